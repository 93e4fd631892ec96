"""What a broker does with its logs now and then: high watermarks are saved, old records removed.

A replica that restarts begins with its checkpointed high watermark, so that it need not take back
what it has told consumers more than necessary. The checkpoint is also written at an orderly stop.

Every replica looks for itself for records that are too old or too many, and only below its high
watermark; a follower also starts where its leader does (following.py). What goes is decided segment
by segment, which only the storage sees (`Retain`).

Source: Kafka's ReplicaManager.checkpointHighWatermarks and LogManager.cleanupLogs.
"""

from collections import deque

from broker.outbox import Outbox
from broker.partition import Partition
from broker.replicas import Replicas
from quorum.core.effects import SaveCheckpoint

__all__ = ["CHECKPOINT", "Checkpointing", "Retention"]

CHECKPOINT = "replication-offset-checkpoint"
Entries = tuple[tuple[str, int, int], ...]


_FIRST_AFTER_MS = 30_000  # log.initial.task.delay.ms
_AT_ONCE = 100  # logs in one go: each may cost reading an index


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


class Retention:
    def __init__(self, *, replicas: Replicas, interval_ms: int) -> None:
        """`interval_ms` is log.retention.check.interval.ms."""
        self._replicas = replicas
        self._interval_ms = interval_ms
        self._next_ms: int | None = None
        self._to_check: deque[Partition] = deque()

    def start(self, now_ms: int) -> None:
        self._next_ms = now_ms + min(_FIRST_AFTER_MS, self._interval_ms)

    def tick(self, now_ms: int) -> None:
        if self._next_ms is None or now_ms < self._next_ms:
            return
        if not self._to_check:
            self._to_check.extend(self._replicas)
        for _ in range(min(_AT_ONCE, len(self._to_check))):
            self._check(self._to_check.popleft(), now_ms)
        self._next_ms = now_ms + (1 if self._to_check else self._interval_ms)

    def deadline_ms(self) -> int | None:
        return self._next_ms

    def _check(self, partition: Partition, now_ms: int) -> None:
        log, settings = partition.log, partition.settings
        if log is None or log.start_offset == log.high_watermark:
            return
        age_ms, bytes_max = settings.retention_ms, settings.retention_bytes
        if age_ms is not None or bytes_max is not None:
            since_ms = None if age_ms is None else now_ms - age_ms
            log.retain(since_ms=since_ms, bytes_max=bytes_max)
