"""A broker works on its logs from time to time: it saves high watermarks, removes old records and
forgets producers.

A replica that restarts begins with its checkpointed high watermark, so that it hides as few records
as possible that consumers have already read. The checkpoint is also written at an orderly stop.

Each replica removes records that are too old or too many by itself, and only below its high
watermark; a follower also starts where its leader does (following.py). Whole segments are removed,
and only the storage knows them (`Retain`).

Idle partitions cost nothing here: a checkpoint is written if something has moved, and only logs
that may hold committed records are looked at for old ones.

Source: Kafka's ReplicaManager.checkpointHighWatermarks and LogManager.cleanupLogs.
"""

from collections import deque
from uuid import UUID

from broker.cluster import Cluster
from broker.replicas import Replicas
from quorum.core.effects import SaveHighWatermarks, earliest
from quorum.core.outbox import Outbox

__all__ = ["Chores"]

_EXPIRE_PRODUCERS_MS = 600_000  # producer.id.expiration.check.interval.ms
_FIRST_AFTER_MS = 30_000  # log.initial.task.delay.ms
_AT_ONCE = 100  # logs in one go: each may cost reading an index


class Checkpointing:
    def __init__(self, *, replicas: Replicas, outbox: Outbox, interval_ms: int) -> None:
        self._replicas = replicas
        self._outbox = outbox
        self._interval_ms = interval_ms
        self._next_ms: int | None = None
        self._has_moved = True  # some partition, since the file was written
        self._saved: dict[tuple[str, int, UUID], int] = {}

    def moved(self) -> None:
        self._has_moved = True

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
        if not self._has_moved or not self._replicas.are_open:
            return
        self._has_moved = False
        high_watermarks = {
            (partition.topic, partition.index, partition.topic_id): partition.log.high_watermark
            for partition in self._replicas
            if partition.log is not None
        }
        if high_watermarks != self._saved:
            self._saved = high_watermarks
            entries = ((topic, index, at) for (topic, index, _), at in high_watermarks.items())
            self._outbox.emit(SaveHighWatermarks(entries=tuple(sorted(entries))))


class Retention:
    def __init__(self, *, replicas: Replicas, interval_ms: int) -> None:
        """`interval_ms` is log.retention.check.interval.ms."""
        self._replicas = replicas
        self._interval_ms = interval_ms
        self._next_ms: int | None = None
        self._may_have_old: dict[str, None] = {}  # the logs that may hold committed records
        self._to_check: deque[str] = deque()

    def start(self, now_ms: int) -> None:
        self._next_ms = now_ms + min(_FIRST_AFTER_MS, self._interval_ms)

    def moved(self, name: str) -> None:
        if name not in self._may_have_old and self._holds_records(name):
            self._may_have_old[name] = None

    def tick(self, now_ms: int) -> None:
        if self._next_ms is None or now_ms < self._next_ms:
            return
        if not self._to_check:
            self._to_check.extend(self._may_have_old)
        for _ in range(min(_AT_ONCE, len(self._to_check))):
            self._check(self._to_check.popleft(), now_ms)
        self._next_ms = now_ms + (1 if self._to_check else self._interval_ms)

    def deadline_ms(self) -> int | None:
        return self._next_ms

    def _holds_records(self, name: str) -> bool:
        partition = self._replicas.of_log(name)
        log = None if partition is None else partition.log
        return log is not None and log.start_offset < log.high_watermark

    def _check(self, name: str, now_ms: int) -> None:
        partition = self._replicas.of_log(name)
        if partition is None or not self._holds_records(name):
            self._may_have_old.pop(name, None)  # until it moves
            return
        age_ms, bytes_max = partition.settings.retention_ms, partition.settings.retention_bytes
        if age_ms is not None or bytes_max is not None:
            since_ms = None if age_ms is None else now_ms - age_ms
            partition.open_log.retain(since_ms=since_ms, bytes_max=bytes_max)


class ProducerExpiry:
    """Forgets producers that have written nothing for producer.id.expiration.ms."""

    def __init__(self, *, replicas: Replicas, cluster: Cluster) -> None:
        self._replicas = replicas
        self._cluster = cluster
        self._next_ms: int | None = None

    def start(self, now_ms: int) -> None:
        self._next_ms = now_ms + _EXPIRE_PRODUCERS_MS

    def tick(self, now_ms: int) -> None:
        if self._next_ms is None or now_ms < self._next_ms:
            return
        self.start(now_ms)
        expired_ms = now_ms - self._cluster.number("producer.id.expiration.ms")
        for partition in self._replicas:
            if partition.log is not None:
                partition.log.producers.expire(expired_ms)

    def deadline_ms(self) -> int | None:
        return self._next_ms


class Chores:
    """All periodic work begins when the cluster's metadata is first seen."""

    def __init__(self, *, replicas: Replicas, cluster: Cluster, outbox: Outbox) -> None:
        config = cluster.config
        self._has_started = False
        self._checkpointing = Checkpointing(
            replicas=replicas,
            outbox=outbox,
            interval_ms=config.high_watermark_checkpoint_interval_ms,
        )
        self.retention = Retention(
            replicas=replicas, interval_ms=config.log_retention_check_interval_ms
        )
        self._all = (
            self._checkpointing,
            self.retention,
            ProducerExpiry(replicas=replicas, cluster=cluster),
        )

    def start(self, now_ms: int) -> None:
        if not self._has_started:
            self._has_started = True
            for chore in self._all:
                chore.start(now_ms)

    def moved(self, name: str) -> None:
        """A partition's offsets have moved, or it has come or gone."""
        self._checkpointing.moved()
        self.retention.moved(name)

    def save_checkpoint(self) -> None:
        self._checkpointing.save()

    def tick(self, now_ms: int) -> None:
        for chore in self._all:
            chore.tick(now_ms)

    def deadline_ms(self) -> int | None:
        return earliest(*(chore.deadline_ms() for chore in self._all))
