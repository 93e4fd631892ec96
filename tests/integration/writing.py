"""A writer that knows what was acknowledged to it, and a reader of all that there is."""

import time

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
        before = len(self.acknowledged)
        for value in range(self._next, self._next + count):
            self.producer.produce(topic, str(value).encode(), on_delivery=self._told)
        self._next += count
        assert self.producer.flush(30) == 0
        assert len(self.acknowledged) == before + count

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
