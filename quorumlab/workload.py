"""A producer that keeps account of every acknowledgement, and a reader that checks all of them."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

__all__ = ["Account", "SteadyProducer", "read_back"]

_READ_SECONDS = 20.0


@dataclass(slots=True)
class Account:
    """The cluster's promises: the value of every acknowledged record, by (partition, offset)."""

    acknowledged: dict[tuple[int, int], bytes] = field(default_factory=dict)
    acknowledged_at: dict[int, list[float]] = field(default_factory=dict)  # by partition, s
    failed: int = 0  # not acknowledged within the delivery time-out: may or may not be there

    def first_after(self, partition: int, moment: float) -> float | None:
        """Returns when the first acknowledgement of `partition` after `moment` came."""
        return next((at for at in self.acknowledged_at.get(partition, ()) if at > moment), None)


class SteadyProducer:
    """Produces numbered records to all partitions in turn from a thread, until stopped."""

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        partitions: int,
        rate: int,
        *,
        security: Mapping[str, str] | None = None,
    ) -> None:
        """`security`: what librdkafka is told of TLS and SASL."""
        self.account = Account()
        self._topic = topic
        self._partitions = partitions
        self._pause_seconds = 1.0 / rate
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "acks": "all",
                "enable.idempotence": True,
                "compression.type": "lz4",
                "linger.ms": 5,
                "delivery.timeout.ms": 30_000,
                "retry.backoff.ms": 20,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "topic.metadata.refresh.interval.ms": 1000,
                "log_level": 2,  # a killed broker is no news here
                "error_cb": lambda _: None,
                **(security or {}),
            }
        )
        self._thread = threading.Thread(target=self._run, name="producer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> int:
        """Stop, and wait for every outstanding record. Returns how many got no answer."""
        self._stop.set()
        self._thread.join()
        return int(self._producer.flush(30))

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            value = b"record %d" % number
            try:
                self._producer.produce(
                    self._topic,
                    value,
                    partition=number % self._partitions,
                    on_delivery=self._delivered,
                )
            except BufferError:  # the local queue is full: nobody acknowledges just now
                self._producer.poll(0.05)
                continue
            number += 1
            self._producer.poll(self._pause_seconds)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.account.failed += 1
            return
        partition = int(message.partition())
        self.account.acknowledged[partition, int(message.offset())] = message.value()
        self.account.acknowledged_at.setdefault(partition, []).append(time.monotonic())


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An acknowledged record that is not what stands at its offset now."""

    partition: int
    offset: int
    acknowledged: bytes
    found: bytes | None


def read_back(
    bootstrap_servers: str,
    topic: str,
    account: Account,
    progress: Callable[[str], None] = lambda _: None,
    security: Mapping[str, str] | None = None,
) -> tuple[int, list[Mismatch]]:
    """Consume every partition from its beginning: (records read, broken promises)."""
    ends: dict[int, int] = {}
    for partition, offset in account.acknowledged:
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "not-used",  # librdkafka wants one; partitions are assigned by hand
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 2,
            **(security or {}),
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
        found = _consume(consumer, ends, progress)
    finally:
        consumer.close()
    return len(found), [
        Mismatch(partition, offset, value, found.get((partition, offset)))
        for (partition, offset), value in account.acknowledged.items()
        if found.get((partition, offset)) != value
    ]


def _consume(
    consumer: Consumer, ends: dict[int, int], progress: Callable[[str], None]
) -> dict[tuple[int, int], bytes]:
    found: dict[tuple[int, int], bytes] = {}
    missing = dict(ends)
    deadline = time.monotonic() + _READ_SECONDS
    while missing and time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.2):
            error = message.error()
            if error is not None:
                if error.fatal():
                    raise KafkaException(error)
                continue
            partition, offset = message.partition(), message.offset()
            assert partition is not None, message
            assert offset is not None, message
            found[partition, offset] = message.value() or b""
            if offset + 1 >= ends[partition]:
                missing.pop(partition, None)
        progress(f"{len(found)} records read back")
    return found
