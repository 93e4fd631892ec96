"""When logs are looked through for records that are too old, or too many.

Every replica does so for itself, and only below its high watermark; a follower also starts where
its leader does (following.py). What goes is decided segment by segment, which only the storage
sees (`Retain`).

Source: Kafka's LogManager.cleanupLogs.
"""

from collections import deque

from broker.partition import Partition
from broker.replicas import Replicas

__all__ = ["Retention"]

_FIRST_AFTER_MS = 30_000  # log.initial.task.delay.ms
_AT_ONCE = 100  # logs in one go: each may cost reading an index


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
