"""A broker has its compacted logs cleaned: it asks for those that may be due.

Each replica is cleaned by itself, below its high watermark. What is due is decided where the
segments are known (`quorum.log.cleaning_choice`), and one log is cleaned at a time. The broker asks
for a log that has moved since it last asked, and for one that time alone makes due: the storage
says when. So idle partitions cost nothing.

Source: Kafka's LogCleaner and LogCleanerManager.
"""

from dataclasses import replace
from functools import partial

from broker.cluster import Cluster
from broker.earliest_times import EarliestTimes
from broker.partition.partition import Partition
from broker.replicas import Replicas
from controller.metadata.delta import MetadataDelta
from quorum.core.log_settings import CleaningRules

__all__ = ["Cleaning"]


class Cleaning:
    def __init__(self, *, replicas: Replicas, cluster: Cluster) -> None:
        self._replicas = replicas
        self._cluster = cluster
        self._moved: dict[str, None] = {}  # since they were last asked for
        self._asked: set[str] = set()  # not answered yet
        self._due = EarliestTimes()
        self.next_ms: int | None = None

    def start(self, now_ms: int) -> None:
        if self._cluster.config.log_cleaner_enable:
            self.next_ms = now_ms + self._cluster.number("log.cleaner.backoff.ms")

    def moved(self, name: str, partition: Partition | None) -> None:
        if partition is None:
            self._moved.pop(name, None)
            self._asked.discard(name)
            self._due.forget(name)
        elif partition.settings.is_compacted and name not in self._moved:
            self._moved[name] = None

    def obey(self, delta: MetadataDelta) -> None:
        """Some logs may be due by other rules."""
        for partition in self._replicas.reconfigured(delta):
            self.moved(partition.name, partition)

    def tick(self, now_ms: int) -> None:
        if self.next_ms is None or now_ms < self.next_ms:
            return
        self.start(now_ms)
        self._moved.update(dict.fromkeys(self._due.take(now_ms + 1)))
        rates = self._rates()
        for name in [name for name in self._moved if name not in self._asked]:
            del self._moved[name]
            self._ask(name, rates, now_ms)

    def _rates(self) -> CleaningRules:
        """How fast, and in how much memory. Of a topic's rules it has none."""
        return CleaningRules(
            map_bytes_max=self._cluster.number("log.cleaner.dedupe.buffer.size"),
            bytes_per_second=self._cluster.ratio("log.cleaner.io.max.bytes.per.second"),
        )

    def _ask(self, name: str, rates: CleaningRules, now_ms: int) -> None:
        partition = self._replicas.of_log(name)
        if partition is None or partition.log is None or not partition.settings.is_compacted:
            return
        rules = replace(
            partition.settings.cleaning,
            map_bytes_max=rates.map_bytes_max,
            bytes_per_second=rates.bytes_per_second,
        )
        self._asked.add(name)
        partition.log.clean(rules, now_ms=now_ms, cleaned=partial(self._cleaned, name))

    def _cleaned(self, name: str, next_ms: int | None, _now_ms: int) -> None:
        self._asked.discard(name)
        if next_ms is not None:
            self._due.note(name, next_ms)
