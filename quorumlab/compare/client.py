"""The measuring client: connections to every broker that do what `attempts` says, on real sockets.

An attempt is one record with acks=all, and nothing is repeated under the hood: an error is counted
where it happens. A broker has two connections, because a request is answered as late as its slowest
partition.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jepsen_like.real.client_settings import PLAIN, ClientSettings
from jepsen_like.real.kafka_client import Client
from jepsen_like.real.layout import ClusterError, NodeLayout
from quorumlab.compare.attempts import Acknowledged, Attempt, Attempts, Outcome
from quorumlab.compare.experiments import Topic, named, place_of
from wire.batch import data_batch
from wire.messages.producing import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

__all__ = ["MeasuringClient"]

_CONNECTIONS = 2  # a broker
_PARTITIONS_MAX = 32  # of a request
_TIMEOUT_MS = 500
_ANSWER_SECONDS = 1.0
_IDLE_SECONDS = 0.004
_RECONNECT_SECONDS = 0.03
_ALL = -1


@dataclass(frozen=True, slots=True)
class Silences:
    first_ms: Sequence[float | None]  # of the partitions asked for, the first acknowledgement
    others_ms: Sequence[float | None]
    longest_ms: Sequence[float]
    errors: Mapping[str, int]


class MeasuringClient:
    """It writes from `start` to `stop`."""

    def __init__(
        self,
        brokers: Sequence[NodeLayout],
        topics: Sequence[Topic],
        *,
        settings: ClientSettings = PLAIN,
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._attempts = Attempts([replicas for topic in topics for replicas in topic.placed])
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(broker,), name=f"client-{broker.id}")
            for broker in brokers
            for _ in range(_CONNECTIONS)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    # --- what others ask ----------------------------------------------------------------

    def mark(self, fault_ns: int, failed_nodes: Sequence[int] = ()) -> None:
        """The fault happens now."""
        with self._lock:
            self._attempts.mark(fault_ns, failed_nodes)

    def wait_written(self, check: Callable[[str], None]) -> None:
        """Waits until every partition has taken a record. `check` hears how far, and may raise."""
        while True:
            with self._lock:
                written, every = self._attempts.written, len(self._attempts.placed)
            if written == every:
                return
            check(f"{written} of {every} partitions take records")
            time.sleep(0.02)

    def led_by(self, broker: int) -> list[int]:
        with self._lock:
            return self._attempts.led_by(broker)

    def leader(self, partition: int) -> int:
        with self._lock:
            return self._attempts.leader(partition)

    def silences(self, affected: Sequence[int]) -> Silences:
        known = set(affected)
        with self._lock:
            others = [each for each in range(len(self._attempts.placed)) if each not in known]
            return Silences(
                first_ms=self._attempts.silences_ms(affected),
                others_ms=self._attempts.silences_ms(others),
                longest_ms=self._attempts.longest_ms(time.monotonic_ns()),
                errors=dict(self._attempts.errors),
            )

    @property
    def acknowledged(self) -> list[Acknowledged]:
        with self._lock:
            return list(self._attempts.acknowledged)

    # --- a connection -------------------------------------------------------------------

    def _work(self, broker: NodeLayout) -> None:
        address = [(broker.host, broker.port)]
        while not self._stop.is_set():
            try:
                with Client(address, _ANSWER_SECONDS, settings=self._settings) as client:
                    self._write_through(client, broker.id)
            except ClusterError:
                with self._lock:
                    self._attempts.falls_silent(broker.id, time.monotonic_ns())
                self._stop.wait(_RECONNECT_SECONDS)

    def _write_through(self, client: Client, broker: int) -> None:
        with self._lock:
            self._attempts.speaks(broker)
        while not self._stop.is_set():
            with self._lock:
                taken = self._attempts.take(broker, time.monotonic_ns(), _PARTITIONS_MAX)
            if not taken:
                self._stop.wait(_IDLE_SECONDS)
                continue
            outcomes: Mapping[int, Outcome] = {}
            try:
                outcomes = self._outcomes(client.ask(self._request(taken), ProduceResponse))
            finally:
                now_ns = time.monotonic_ns()
                with self._lock:
                    self._attempts.told(broker, taken, outcomes, now_ns)

    def _request(self, taken: Sequence[Attempt]) -> ProduceRequest:
        now_ms = time.time_ns() // 1_000_000
        by_topic: dict[int, list[PartitionProduceData]] = {}
        for attempt in taken:
            topic, index = place_of(self._topics, attempt.partition)
            batch = data_batch([b"%d" % attempt.value], timestamp_ms=now_ms)
            by_topic.setdefault(topic, []).append(PartitionProduceData(index=index, records=batch))
        return ProduceRequest(
            acks=_ALL,
            timeout_ms=_TIMEOUT_MS,
            topic_data=tuple(
                TopicProduceData(
                    name=self._topics[number].name,
                    topic_id=self._topics[number].id,
                    partition_data=tuple(data),
                )
                for number, data in by_topic.items()
            ),
        )

    def _outcomes(self, answer: ProduceResponse) -> dict[int, Outcome]:
        """Outcomes by partition, counted through all topics."""
        found = {}
        for told in answer.responses:
            topic = named(self._topics, told.name, told.topic_id)
            for each in told.partition_responses:
                found[topic.first + each.index] = Outcome(each.error_code, each.base_offset)
        return found
