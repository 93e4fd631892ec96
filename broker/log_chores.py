"""A broker works on its logs from time to time: it saves high watermarks, removes old records, has
logs compacted (log_cleaning.py) and forgets producers.

A replica that restarts begins with its checkpointed high watermark, so that it hides as few records
as possible that consumers have already read. The checkpoint is also written at an orderly stop.

Each replica removes records that are too old or too many by itself, and only below its high
watermark; a follower also starts where its leader does (following.py). Whole segments are removed,
and only the storage knows them (`Retain`).

Idle partitions cost nothing here. Only logs that have moved have their high watermarks saved. The
logs that are looked at for old records are those that have moved since the last look, and those
whose oldest segment is old by now: the storage says how old it is (`LocalLog.oldest_ms`). Those
that are looked at for silent producers are those of which one has been silent for long enough.

Source: Kafka's ReplicaManager.checkpointHighWatermarks and LogManager.cleanupLogs.
"""

from collections import deque

from broker.cluster import Cluster
from broker.earliest_times import EarliestTimes
from broker.log_cleaning import Cleaning
from broker.partition.partition import Partition
from broker.replicas import Replicas
from controller.metadata.delta import MetadataDelta
from quorum.core.effects import SaveHighWatermarks, earliest
from quorum.core.outbox import Outbox

__all__ = ["LogChores"]

_EXPIRE_PRODUCERS_MS = 600_000  # producer.id.expiration.check.interval.ms
_FIRST_AFTER_MS = 30_000  # log.initial.task.delay.ms
_AT_ONCE = 100  # logs in one go: each may cost reading an index


class Checkpointing:
    def __init__(self, *, replicas: Replicas, outbox: Outbox, interval_ms: int) -> None:
        self._replicas = replicas
        self._outbox = outbox
        self._interval_ms = interval_ms
        self.next_ms: int | None = None
        self._moved: dict[str, None] = {}  # the logs that have, since their offsets were saved

    def moved(self, name: str) -> None:
        self._moved[name] = None

    def start(self, now_ms: int) -> None:
        self.next_ms = now_ms + self._interval_ms

    def tick(self, now_ms: int) -> None:
        if self.next_ms is not None and now_ms >= self.next_ms:
            self.next_ms = now_ms + self._interval_ms
            self.save()

    def save(self) -> None:
        """Not while logs are being opened: their own high watermarks are not known yet.

        One that is back where it was is saved again: the storage has forgotten or lowered it, if
        the log was deleted, has begun anew or was truncated meanwhile.
        """
        if not self._moved or not self._replicas.are_open:
            return
        moved, self._moved = self._moved, {}
        hosted = [each for name in moved if (each := self._replicas.of_log(name)) is not None]
        entries = [
            (each.topic, each.index, each.log.high_watermark)
            for each in hosted
            if each.log is not None
        ]
        if entries:
            self._outbox.emit(SaveHighWatermarks(entries=tuple(sorted(entries))))


class Retention:
    def __init__(self, *, replicas: Replicas, interval_ms: int) -> None:
        """`interval_ms` is log.retention.check.interval.ms."""
        self._replicas = replicas
        self._interval_ms = interval_ms
        self.next_ms: int | None = None
        self._watched: dict[str, None] = {}  # the logs to look at when the interval is up
        self._moved: dict[str, None] = {}  # those that have moved since the interval began
        self._due = EarliestTimes()  # when the oldest segment of a log gets old
        self._to_check: deque[str] = deque()

    def start(self, now_ms: int) -> None:
        self.next_ms = now_ms + min(_FIRST_AFTER_MS, self._interval_ms)

    def moved(self, name: str, partition: Partition | None) -> None:
        if partition is None:
            self._due.forget(name)
        elif name not in self._moved and holds_records(partition):
            self._moved[name] = self._watched[name] = None

    def obey(self, delta: MetadataDelta) -> None:
        """The limits of some logs may be others by now."""
        for partition in self._replicas.reconfigured(delta):
            self.moved(partition.name, partition)

    def tick(self, now_ms: int) -> None:
        if self.next_ms is None or now_ms < self.next_ms:
            return
        if not self._to_check:
            self._begin(now_ms)
        for _ in range(min(_AT_ONCE, len(self._to_check))):
            self._check(self._to_check.popleft(), now_ms)
        self.next_ms = now_ms + (1 if self._to_check else self._interval_ms)

    def _begin(self, now_ms: int) -> None:
        """Watch those that are old by now, and no longer those that only time can change."""
        for name in [each for each in self._watched if each not in self._moved]:
            if self._rests(name):
                del self._watched[name]
        self._watched.update(dict.fromkeys(self._due.take(now_ms)))
        self._moved.clear()
        self._to_check.extend(self._watched)

    def _rests(self, name: str) -> bool:
        """Has a log that does not move nothing to let go of, until a time that is noted here?"""
        partition = self._replicas.of_log(name)
        if partition is None or partition.log is None:
            return False  # the next check drops it
        settings, oldest_ms = partition.settings, partition.log.oldest_ms
        if settings.retention_ms is None and settings.retention_bytes is None:
            return True
        if settings.retention_ms is not None and oldest_ms is not None:
            self._due.note(name, oldest_ms + settings.retention_ms)
        return oldest_ms is not None

    def _check(self, name: str, now_ms: int) -> None:
        partition = self._replicas.of_log(name)
        if partition is None or not holds_records(partition):
            self._watched.pop(name, None)  # until it moves
            return
        age_ms, bytes_max = partition.settings.retention_ms, partition.settings.retention_bytes
        if age_ms is not None or bytes_max is not None:
            since_ms = None if age_ms is None else now_ms - age_ms
            partition.open_log.retain(since_ms=since_ms, bytes_max=bytes_max)


def holds_records(partition: Partition) -> bool:
    log = partition.log
    return log is not None and log.start_offset < log.high_watermark


class ProducerExpiry:
    """Forgets producers that have written nothing for producer.id.expiration.ms."""

    def __init__(self, *, replicas: Replicas, cluster: Cluster) -> None:
        self._replicas = replicas
        self._cluster = cluster
        self.next_ms: int | None = None
        self._last_writes = EarliestTimes()  # of the one that is silent for longest

    def moved(self, name: str, partition: Partition | None) -> None:
        if partition is None:
            self._last_writes.forget(name)
        elif partition.log is not None and partition.log.producers.oldest_ms is not None:
            self._last_writes.note(name, partition.log.producers.oldest_ms)

    def start(self, now_ms: int) -> None:
        self.next_ms = now_ms + _EXPIRE_PRODUCERS_MS

    def tick(self, now_ms: int) -> None:
        if self.next_ms is None or now_ms < self.next_ms:
            return
        self.start(now_ms)
        expired_ms = now_ms - self._cluster.number("producer.id.expiration.ms")
        for name in self._last_writes.take(expired_ms):
            partition = self._replicas.of_log(name)
            if partition is not None and partition.log is not None:
                partition.log.producers.expire(expired_ms)
                self.moved(name, partition)


class LogChores:
    """All periodic work begins when the cluster's metadata is first seen."""

    def __init__(self, *, replicas: Replicas, cluster: Cluster, outbox: Outbox) -> None:
        config = cluster.config
        self._has_started = False
        self._next_ms: int | None = None  # the first of theirs
        self._checkpointing = Checkpointing(
            replicas=replicas,
            outbox=outbox,
            interval_ms=config.high_watermark_checkpoint_interval_ms,
        )
        self.retention = Retention(
            replicas=replicas, interval_ms=config.log_retention_check_interval_ms
        )
        self._expiry = ProducerExpiry(replicas=replicas, cluster=cluster)
        self._cleaning = Cleaning(replicas=replicas, cluster=cluster)
        self._chores = (self._checkpointing, self.retention, self._cleaning, self._expiry)

    def start(self, now_ms: int) -> None:
        if not self._has_started:
            self._has_started = True
            for chore in self._chores:
                chore.start(now_ms)
            self._note_next()

    def tick(self, now_ms: int) -> None:
        for chore in self._chores:
            chore.tick(now_ms)
        self._note_next()

    def _note_next(self) -> None:
        self._next_ms = earliest(*[chore.next_ms for chore in self._chores])

    def deadline_ms(self) -> int | None:
        return self._next_ms

    def moved(self, name: str, partition: Partition | None) -> None:
        """A partition's offsets may have moved, or it has come or gone: None."""
        self._checkpointing.moved(name)
        self.retention.moved(name, partition)
        self._cleaning.moved(name, partition)
        self._expiry.moved(name, partition)

    def obey(self, delta: MetadataDelta) -> None:
        self.retention.obey(delta)
        self._cleaning.obey(delta)

    def save_checkpoint(self) -> None:
        self._checkpointing.save()
