"""The data directories of a broker (JBOD): in which of them a partition's log lies, and which fail.

A directory fails while a process runs, and stays so until somebody repairs it. Its logs keep what
they have, but nobody reads, writes or deletes them. The storage tells the broker of the failure, as
`quorum.log.files.file_storage` does: each log that lies there has failed. A log may begin anew in
another directory; then what the failed directory has of it is not seen again.

Source: KIP-112, KIP-858.
"""

from collections.abc import Iterator
from uuid import UUID

from quorum.core.effects import DeleteLog, OpenLog
from quorum.core.log_state import FoundLog
from quorum.core.storage import StorageEffect

__all__ = ["DataDirectories"]


class DataDirectories:
    def __init__(self) -> None:
        self.ids: tuple[UUID, ...] = ()  # one or none: all logs lie in one place
        self.unreadable: set[UUID] = set()
        self.homes: dict[str, UUID] = {}  # by log

    @property
    def online(self) -> tuple[UUID, ...]:
        return tuple(each for each in self.ids if each not in self.unreadable)

    def logs_in(self, directory_id: UUID) -> list[str]:
        return [log for log, home in self.homes.items() if home == directory_id]

    def found(self, topic_ids: "Iterator[tuple[str, UUID]]") -> tuple[FoundLog, ...]:
        """Return the state in which a process finds these logs at its start."""
        return tuple(
            FoundLog(log=log, topic_id=topic_id, directory_id=self.homes[log])
            for log, topic_id in topic_ids
            if self.homes.get(log) in self.online
        )

    def failed(self, effect: StorageEffect) -> UUID | None:
        """The directory because of which this cannot be done; None if it can be."""
        match effect:
            case OpenLog(directory_id=directory_id):
                return directory_id if directory_id in self.unreadable else None
            case _:
                home = self.homes.get(getattr(effect, "log", ""))
                return home if home in self.unreadable else None

    def note(self, effect: StorageEffect) -> bool:
        """Returns whether a log begins anew, away from the failed directory that has it."""
        match effect:
            case OpenLog(log=log, directory_id=directory_id):
                before = self.homes.get(log)
                self.homes[log] = directory_id
                return before in self.unreadable
            case DeleteLog(log=log):
                self.homes.pop(log, None)
                return False
            case _:
                return False

    def clear(self) -> None:
        """All logs are lost."""
        self.homes.clear()
