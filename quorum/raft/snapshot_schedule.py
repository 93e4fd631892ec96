"""When a node takes the next snapshot: so many bytes of records after the last, or so long.

Every node decides for itself, by what was delivered to it. Without new records no time is long
enough.

Source: KIP-630; Kafka's SnapshotGenerator.
"""

from quorum.raft.config import SnapshotSettings

__all__ = ["SnapshotSchedule"]

_RETRY_MS = 1000  # before an application that had nothing to give is asked without new records


class SnapshotSchedule:
    """`due_ms`: when to take one if nothing else happens until then; None if not at all."""

    def __init__(self, settings: SnapshotSettings) -> None:
        self.due_ms: int | None = None
        self._settings = settings
        self._bytes = 0  # of records since the last snapshot
        self.taken_ms: int | None = None  # the last snapshot, or the start
        self._retry_ms = 0

    def delivered(self, size_bytes: int, now_ms: int) -> None:
        self._bytes += size_bytes
        self._retry_ms = now_ms
        self._look()

    def taken(self, now_ms: int) -> None:
        """All that was delivered is in a snapshot: written here, or loaded. At the start, too:
        no snapshot is remembered from before.
        """
        self._bytes = 0
        self.taken_ms = now_ms
        self.due_ms = None

    def put_off(self, now_ms: int) -> None:
        """Now is not the time."""
        self._retry_ms = now_ms + _RETRY_MS
        self._look()

    def _look(self) -> None:
        if self._bytes == 0 or self.taken_ms is None:
            self.due_ms = None
        elif self._bytes >= self._settings.bytes_between:
            self.due_ms = self._retry_ms
        elif self._settings.interval_ms == 0:
            self.due_ms = None
        else:
            self.due_ms = max(self._retry_ms, self.taken_ms + self._settings.interval_ms)
