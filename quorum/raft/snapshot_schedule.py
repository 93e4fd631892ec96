"""When a node takes the next snapshot: so many bytes of records after the last, or so long.

Every node decides for itself, by what was delivered to it. Without new records no time is long
enough.

Source: KIP-630; Kafka's SnapshotGenerator.
"""

from quorum.raft.config import SnapshotSettings

__all__ = ["SnapshotSchedule"]

_RETRY_MS = 1000  # before an application that had nothing to give is asked without new records


class SnapshotSchedule:
    def __init__(self, settings: SnapshotSettings) -> None:
        self._settings = settings
        self._bytes = 0  # of records since the last snapshot
        self._taken_ms: int | None = None  # the last snapshot, or the start
        self._retry_ms = 0

    def start(self, now_ms: int) -> None:
        """The process has begun: no snapshot is remembered from before."""
        if self._taken_ms is None:
            self._taken_ms = now_ms

    def delivered(self, size_bytes: int, now_ms: int) -> None:
        self._bytes += size_bytes
        self._retry_ms = now_ms

    def taken(self, now_ms: int) -> None:
        """All that was delivered is in a snapshot: written here, or loaded."""
        self._bytes = 0
        self._taken_ms = now_ms

    def put_off(self, now_ms: int) -> None:
        """Now is not the time."""
        self._retry_ms = now_ms + _RETRY_MS

    def is_due(self, now_ms: int) -> bool:
        due_ms = self.due_ms()
        return due_ms is not None and due_ms <= now_ms

    def due_ms(self) -> int | None:
        """When to take one if nothing else happens until then; None if not at all."""
        if self._bytes == 0 or self._taken_ms is None:
            return None
        if self._bytes >= self._settings.bytes_between:
            return self._retry_ms
        if self._settings.interval_ms == 0:
            return None
        return max(self._retry_ms, self._taken_ms + self._settings.interval_ms)
