"""A broker knows which of its data directories are online, and in which of them a replica lies.

It decides where a replica's log is opened, and which logs the metadata does not know. Where there
is a choice, the directory that was asked for is taken, else the one with the fewest logs.

A replica that the metadata puts into a directory that is not online may have its records there:
while any directory is offline it is not created elsewhere, since an empty log of an acknowledged
replica would be a loss. Nor is a log that was found in a directory that has failed since, whatever
the metadata knows of it. Nor is a replica that was in sync when the process started: if the
metadata knows no directory of it, the controller may not have heard yet in which it lies.

Source: KIP-112, KIP-858; Kafka's LogManager.getOrCreateLog and, in Partition,
createLogInAssignedDirectoryId.
"""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from broker.config import BrokerConfig
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import PartitionState
from quorum.core.effects import FoundLog
from wire.primitives import DIRECTORY_UNASSIGNED, ZERO_UUID

__all__ = ["LogDirs", "directory_of", "strays"]


class LogDirs:
    def __init__(self, config: BrokerConfig, found: Sequence[FoundLog] = ()) -> None:
        """`found` are the logs that lie in the directories when the process starts."""
        self._had_offline = config.has_offline_log_dirs
        self._online = dict.fromkeys(config.log_dirs)
        self._offline: dict[UUID, None] = {}  # that failed since
        self._found: dict[str, list[UUID]] = {}
        self._counts: Counter[UUID] = Counter()
        self._preferred: dict[str, UUID] = {}
        self.found = tuple(found)
        for each in found:
            self._found.setdefault(each.log, []).append(each.directory_id)
            self._counts[each.directory_id] += 1

    @property
    def are_all_offline(self) -> bool:
        return not self._online

    @property
    def logs(self) -> tuple[str, ...]:
        """The names of all that lie here."""
        return tuple(self._found)

    @property
    def online(self) -> tuple[UUID, ...]:
        return tuple(self._online)

    @property
    def failed(self) -> tuple[UUID, ...]:
        """The directories that failed since the start, in that order."""
        return tuple(self._offline)

    def place(self, log: str, assigned: UUID) -> UUID | None:
        """The directory for a log that the metadata puts into `assigned`; None if there is none."""
        preferred = self._preferred.pop(log, None)
        copies = [each for each in self._found.get(log, ()) if each in self._online]
        is_new = log not in self._found
        if is_new and preferred in self._online and self._may_create(assigned):
            chosen = preferred
        elif assigned in (copies or self._online):
            chosen = assigned
        elif copies:
            chosen = copies[0]
        elif is_new and self._may_create(assigned):
            chosen = min(self._online, key=lambda each: self._counts[each])
        else:
            return None
        if is_new:
            self._counts[chosen] += 1
        self._found[log] = [chosen]
        return chosen

    def prefer(self, log: str, directory_id: UUID) -> None:
        """If the log is created, then there."""
        self._preferred[log] = directory_id

    def lies_in(self, log: str, assigned: UUID) -> UUID:
        """The directory of a log that cannot be opened: where it was found, else `assigned`."""
        return self._found.get(log, [assigned])[0]

    def _may_create(self, assigned: UUID) -> bool:
        if not self._online:
            return False
        has_offline = self._had_offline or bool(self._offline)
        return assigned == DIRECTORY_UNASSIGNED or not has_offline

    def removed(self, log: str) -> None:
        for directory_id in self._found.pop(log, ()):
            self._counts[directory_id] -= 1

    def fail(self, directory_id: UUID) -> list[UUID]:
        """It cannot be used any more. Which ones that adds: none if it was known.

        ZERO_UUID stands for all, where the storage knows but one place.
        """
        failed = [each for each in self._online if directory_id in (each, ZERO_UUID)]
        for each in failed:
            del self._online[each]
            self._offline[each] = None
        return failed


def directory_of(state: PartitionState, node_id: int) -> UUID:
    """Where the metadata puts the replica of a broker that has one."""
    return state.directories[state.replicas.index(node_id)]


def strays(found: Sequence[FoundLog], image: MetadataImage, node_id: int) -> list[FoundLog]:
    """The replicas that the metadata does not assign to this broker.

    A topic was deleted or a replica moved while the broker was away; or the metadata was lost,
    which is why they are set aside and not deleted. A log of an earlier topic of the same name is
    noticed when it is opened.
    """
    assigned = set()
    for topic_id, index, _ in image.partitions_with(node_id):
        topic = image.topic_by_id(topic_id)
        if topic is not None:
            assigned.add(f"{topic.name}-{index}")
    return [each for each in found if each.log not in assigned]
