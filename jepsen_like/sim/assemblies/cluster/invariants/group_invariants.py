"""Committed offsets of groups.

D-GRP   what a coordinator serves from its beginning on holds every commit that was acknowledged in
        an earlier leader epoch; and whoever asks the broker that acknowledged a commit is shown the
        commit or told an error, in words that its software knows

Commits of a coordinator's own epoch are in it anyway, and of a later one it may be deposed without
knowing.
"""

from collections.abc import Callable
from typing import NamedTuple

from broker.broker import Broker
from broker.groups.coordinator import Coordinator
from broker.groups.offsets_topic import OFFSETS_TOPIC
from jepsen_like.sim.assemblies.cluster.invariants.partition_invariants import PartitionInvariants
from jepsen_like.sim.assemblies.cluster.invariants.watched import TOPIC, Watched
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from wire.errors import ErrorCode
from wire.messages.group_offsets import OffsetFetchResponse

__all__ = ["PLACE", "Commit", "GroupInvariants"]

PLACE = (TOPIC, 0)  # of which all groups commit an offset


class Commit(NamedTuple):
    """A broker has acknowledged this offset to a group."""

    group: str
    offset: int
    broker: int


class GroupInvariants:
    """Raises `Violation`."""

    def __init__(self, partitions: PartitionInvariants, fired: Callable[[str], None]) -> None:
        self.commits: list[Commit] = []  # all that were acknowledged
        self._partitions = partitions
        self._fired = fired
        self._acknowledged: dict[int, dict[str, int]] = {}  # by leader epoch
        self._served: dict[int, Coordinator] = {}  # by node: the last one seen

    @property
    def may_be_lost(self) -> bool:
        """What was committed need not be there any more."""
        watched = self._watched()
        return watched is None or bool(watched.excused)

    def _watched(self) -> Watched | None:
        """The partition of the offsets."""
        return self._partitions.named(f"{OFFSETS_TOPIC}-0")

    def acknowledged(self, commit: Commit) -> None:
        """The commit was made in the leader epoch of now, or in an earlier one."""
        watched = self._watched()
        if watched is not None and watched.state is not None:
            commits = self._acknowledged.setdefault(watched.state.leader_epoch, {})
            commits[commit.group] = commit.offset
            self.commits.append(commit)
            self._fired("offset_committed")

    def told(self, commit: Commit, answer: OffsetFetchResponse) -> None:
        """The broker that acknowledged the commit must show it, or refuse."""
        watched, group = self._watched(), answer.groups[0]
        places = [place for topic in group.topics for place in topic.partitions]
        is_refused = any(each.error_code is not ErrorCode.NONE for each in (group, *places))
        if watched is None or watched.excused or is_refused:
            return
        offsets = [place.committed_offset for place in places]
        if offsets != [commit.offset]:
            raise Violation(
                "D-GRP",
                f"{commit.group} committed {commit.offset}, acknowledged by {commit.broker}, which"
                f" then showed {offsets}, and no error",
            )
        self._fired("commit_shown")

    def settled_broker(self, host: Host, broker: Broker) -> None:
        for coordinator in broker.coordinators:
            is_new = self._served.get(host.node_id) is not coordinator
            if coordinator.error is ErrorCode.NONE and is_new:
                self._served[host.node_id] = coordinator
                self._has_loaded(host, coordinator)

    def _has_loaded(self, host: Host, coordinator: Coordinator) -> None:
        watched = self._watched()
        if watched is None or watched.excused:
            return
        earlier = {
            group: offset
            for epoch, commits in self._acknowledged.items()
            if epoch < coordinator.leader_epoch
            for group, offset in commits.items()
        }
        for group, offset in earlier.items():
            known = coordinator.offsets.get(group, {}).get(PLACE)
            if known is None or known.offset != offset:
                raise Violation(
                    "D-GRP",
                    f"{group} committed {offset} before epoch {coordinator.leader_epoch}, whose"
                    f" coordinator on {host.node_id} knows {known}",
                )
        if earlier:
            self._fired("commits_loaded")
