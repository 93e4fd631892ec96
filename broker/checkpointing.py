"""The high watermarks on disk: written now and then, and at an orderly stop.

A replica that restarts begins with its checkpointed high watermark, so that it need not take back
what it has told consumers more than necessary.

Source: Kafka's ReplicaManager.checkpointHighWatermarks.
"""

from broker.outbox import Outbox
from broker.replicas import Replicas
from quorum.core.effects import SaveCheckpoint

__all__ = ["CHECKPOINT", "Checkpointing"]

CHECKPOINT = "replication-offset-checkpoint"
Entries = tuple[tuple[str, int, int], ...]


class Checkpointing:
    def __init__(self, *, replicas: Replicas, outbox: Outbox, interval_ms: int) -> None:
        self._replicas = replicas
        self._outbox = outbox
        self._interval_ms = interval_ms
        self._next_ms: int | None = None
        self._saved: Entries = ()

    def start(self, now_ms: int) -> None:
        self._next_ms = now_ms + self._interval_ms

    def tick(self, now_ms: int) -> None:
        if self._next_ms is not None and now_ms >= self._next_ms:
            self._next_ms = now_ms + self._interval_ms
            self.save()

    def deadline_ms(self) -> int | None:
        return self._next_ms

    def save(self) -> None:
        """Not while logs are being opened: the file replaces what it said of them."""
        if not self._replicas.are_open:
            return
        entries = tuple(
            sorted(
                (partition.topic, partition.index, partition.log.high_watermark)
                for partition in self._replicas
                if partition.log is not None
            )
        )
        if entries != self._saved:
            self._saved = entries
            self._outbox.emit(SaveCheckpoint(name=CHECKPOINT, entries=entries))
