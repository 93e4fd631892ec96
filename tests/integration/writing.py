"""A writer that knows what was acknowledged to it, and a reader of all that there is."""

import time
from collections.abc import Sequence

from confluent_kafka import Consumer, Producer

__all__ = ["Writer", "everything"]


class Writer:
    """An idempotent producer with acks=all, and what it was told."""

    def __init__(self, servers: str) -> None:
        settings = {"bootstrap.servers": servers, "acks": "all", "enable.idempotence": True}
        self.producer = Producer(settings)
        self.acknowledged: list[bytes] = []
        self._next = 0

    def write(self, topic: str, count: int) -> None:
        """Write them, and wait until each is acknowledged."""
        self._write(topic, [-1] * count)

    def write_to_each(self, topic: str, partitions: int) -> None:
        """Write one to each partition: acknowledged, they say that its ISR has all before them."""
        self._write(topic, range(partitions))

    def _write(self, topic: str, partitions: Sequence[int]) -> None:
        before = len(self.acknowledged)
        for value, partition in enumerate(partitions, self._next):
            self.producer.produce(
                topic, str(value).encode(), partition=partition, on_delivery=self._told
            )
        self._next += len(partitions)
        assert self.producer.flush(30) == 0
        assert len(self.acknowledged) == before + len(partitions)

    def _told(self, error: object, message: object) -> None:
        assert error is None, error
        self.acknowledged.append(message.value())  # type: ignore[attr-defined]


def everything(servers: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "all", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found.append(message.value() or b"")
    consumer.close()
    return found
