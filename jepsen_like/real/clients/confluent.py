"""The log's client on confluent-kafka (librdkafka): sends, polls, assignments.

The last error says nothing of earlier tries, and the library tries again: idempotent for as long as
it has, and otherwise, whatever `message.send.max.retries` says, after NOT_LEADER_OR_FOLLOWER, as a
broker answers also when it has appended and lost its leadership. So an error is `info`, but for
those that the first try would have met as well: they are about the record itself.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from jepsen_like.histories.history import Kind, Value, key_of, place_of
from jepsen_like.real.clients.target import Target, known_offset
from jepsen_like.workloads.workload import Done, Wish

__all__ = ["ConfluentClient"]

_POLL_SECONDS = 0.2
_RECORDS_MAX = 500  # of a poll
_OFFSETS_SECONDS = 3.0
_NEVER_APPENDED = (
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.INVALID_RECORD,
)
_COMMON: Mapping[str, Any] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "topic.metadata.refresh.interval.ms": 1000,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "socket.timeout.ms": 3000,
    "log_level": 0,  # broken connections are no news here
    "error_cb": lambda _: None,
}


class ConfluentClient:
    def __init__(self, target: Target, *, idempotent: bool, timeout_seconds: float) -> None:
        servers = {"bootstrap.servers": target.bootstrap_servers}
        self._common = {**_COMMON, **servers, **target.credentials.librdkafka}
        self._idempotent = idempotent
        self._timeout_seconds = timeout_seconds
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None
        self._next: dict[str, int] = {}  # of each key assigned: the offset to read next

    def invoke(self, wish: Wish) -> Done:
        match wish:
            case Wish(f="send", value=[["send", key, value]]):
                return self._send(key, value)
            case Wish(f="poll"):
                return self._poll(until_caught_up="until" in wish.extra)
            case Wish(f="assign", value=keys):
                return self._assign(keys, from_zero=wish.extra.get("seek") == "beginning")
            case _:
                return Done(kind=Kind.FAIL, error=f"this client knows no {wish.f}")

    def close(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer = None
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    # --- sending ---

    def _send(self, key: str, value: int) -> Done:
        topic, partition = place_of(key)
        ended: list[Done] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                at = known_offset(message.offset())
                ended.append(Done(kind=Kind.OK, value=[["send", key, [at, value]]]))
            else:
                ended.append(Done(kind=self._kind_of(error), error=error.name()))

        producer = self._open_producer()
        try:
            producer.produce(topic, b"%d" % value, partition=partition, on_delivery=delivered)
        except BufferError:
            return Done(kind=Kind.FAIL, error="the queue is full")
        except KafkaException as error:
            self._part_if_fatal(error.args[0])
            return Done(kind=Kind.FAIL, error=error.args[0].name())  # it was never queued
        # The library gives up first; the rest is for its report to come.
        deadline = time.monotonic() + self._timeout_seconds + 1.0
        while not ended and time.monotonic() < deadline:
            try:
                producer.poll(0.1)
            except KafkaException as error:
                self._part_if_fatal(error.args[0])
                return ended[0] if ended else Done(kind=Kind.INFO, error=error.args[0].name())
        return ended[0] if ended else Done(kind=Kind.INFO, error="no delivery report")

    def _part_if_fatal(self, error: KafkaError) -> None:
        """A producer whose sequence numbers the broker has lost sends nothing any more: the next
        record is sent by another."""
        if error.fatal() and self._producer is not None:
            self._producer.purge()
            self._producer = None

    @staticmethod
    def _kind_of(error: KafkaError) -> Kind:
        """How an operation ended whose record was queued, and may have been sent."""
        return Kind.FAIL if error.code() in _NEVER_APPENDED else Kind.INFO

    def _open_producer(self) -> Producer:
        if self._producer is None:
            own = {
                "acks": "all",
                "enable.idempotence": self._idempotent,
                "linger.ms": 0,
                "delivery.timeout.ms": int(self._timeout_seconds * 1000),
                "request.timeout.ms": 2000,
            }
            if not self._idempotent:
                own["message.send.max.retries"] = 0
            self._producer = Producer({**self._common, **own})
        return self._producer

    # --- polling ---

    def _assign(self, keys: Sequence[str], *, from_zero: bool) -> Done:
        """With offsets that are known: told to look for an end, the library may find it later than
        the next assignment comes, and then skips to it."""
        consumer = self._open_consumer()
        offsets: dict[str, int] = {}
        for key in keys:
            known = 0 if from_zero else self._next.get(key)
            end = self._end(consumer, key) if known is None else known
            if end is None:
                return Done(kind=Kind.FAIL, error=f"the end of {key} is not known")
            offsets[key] = end
        self._next = offsets
        consumer.assign([TopicPartition(*place_of(key), at) for key, at in offsets.items()])
        return Done(kind=Kind.OK, value=list(keys))

    def _end(self, consumer: Consumer, key: str) -> int | None:
        """As the partition's leader tells now."""
        place = TopicPartition(*place_of(key))
        try:
            offsets = consumer.get_watermark_offsets(place, timeout=_OFFSETS_SECONDS)
        except KafkaException:
            return None
        return None if offsets is None else int(offsets[1])

    def _poll(self, *, until_caught_up: bool) -> Done:
        consumer = self._open_consumer()
        first = consumer.poll(_POLL_SECONDS)
        messages = [] if first is None else [first, *consumer.consume(_RECORDS_MAX - 1, 0)]
        found: dict[str, list[list[int]]] = {}
        errors = []
        for message in messages:
            error = message.error()
            if error is not None:
                errors.append(error.name())
            else:
                self._take(message, found)
        if errors and not found:
            return Done(kind=Kind.FAIL, error=", ".join(errors))
        extra: dict[str, Value] = {"errors": errors} if errors else {}
        if until_caught_up and not messages:
            extra["caught_up"] = self._has_caught_up(consumer)
        return Done(kind=Kind.OK, value=[["poll", found]], extra=extra)

    def _take(self, message: Message, found: dict[str, list[list[int]]]) -> None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None, message
        assert partition is not None, message
        assert offset is not None, message
        key = key_of(topic, partition)
        found.setdefault(key, []).append([offset, int(message.value() or b"-1")])
        self._next[key] = offset + 1

    def _has_caught_up(self, consumer: Consumer) -> bool:
        """Nothing is left to read."""
        ends = ((offset, self._end(consumer, key)) for key, offset in self._next.items())
        return all(end is not None and offset >= end for offset, end in ends)

    def _open_consumer(self) -> Consumer:
        if self._consumer is None:
            own = {
                "group.id": "unused",  # librdkafka wants one; partitions are assigned by hand
                "enable.auto.commit": False,
                "auto.offset.reset": "error",  # an offset out of range is an event, not a detail
                "check.crcs": True,
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 50,
            }
            self._consumer = Consumer({**self._common, **own})
        return self._consumer
