"""`quorumlab produce`: each line of the input becomes a record; tells where each one is."""

import json
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import BinaryIO

from confluent_kafka import KafkaError, Message, Producer

from quorumlab.arguments import Failed
from quorumlab.output import complain, say_if_heard
from quorumlab.verbs.common import in_bounds, pairs
from quorumlab.verbs.librdkafka import Partitions, in_words, kafka_errors_as_failed, settings
from wire.primitives import INT32_MAX, INT64_MAX

__all__ = ["run", "timeout_ms"]

_POLL_SECONDS = 0.1
_ANY_PARTITION = -1
_NOW = 0  # as a timestamp, to librdkafka
_BYTES_MAX = 1_000_000_000  # as much as librdkafka takes: the broker says what is too large


def run(args: SimpleNamespace) -> int:
    in_bounds(args, count=(0, INT64_MAX), timestamp=(1, INT64_MAX))
    separator = (args.key_separator or "").encode()
    how = {
        "enable.idempotence": True,
        "compression.type": args.compression,
        "linger.ms": 5,
        "message.timeout.ms": timeout_ms(args.timeout),
        "message.max.bytes": _BYTES_MAX,
    }
    if sys.stdin is None:
        raise Failed("standard input is closed: there is nothing to send")
    with kafka_errors_as_failed():
        sender = _Sender(Producer(settings(args) | how), args)
        try:
            for key, value in _records(sys.stdin.buffer, separator, args.count):
                sender.send(key, value)
        finally:  # also at Ctrl-C: what was read is sent
            sender.finish()
    return 0


def timeout_ms(seconds: float) -> int:
    """As librdkafka takes it: 0 would be for ever."""
    return max(1, int(min(seconds * 1000, INT32_MAX)))


def _records(
    lines: BinaryIO, separator: bytes, count: int | None
) -> Iterator[tuple[bytes | None, bytes]]:
    """Key and value of each line; a line without the separator has no key."""
    for number, line in enumerate(lines):
        if number == count:
            return
        text = line.removesuffix(b"\n")
        key, found, value = text.partition(separator) if separator else (b"", b"", b"")
        yield (key, value) if found else (None, text)


class _Sender:
    """Sends records as the options say, and tells where each one is."""

    def __init__(self, producer: Producer, args: SimpleNamespace) -> None:
        self._producer = producer
        self._args = args
        self._headers: list[tuple[str, str | bytes | None]] = [*pairs("--header", args.header)]
        self._partitions = Partitions(producer, args.topic)
        self._partition = _ANY_PARTITION
        if args.partition is not None:
            self._partition = self._partitions.check(args.partition)
            if told := self._partitions.without_leader([args.partition]):
                complain(f"{told}; trying for {args.timeout:g} s")
        self._untold: list[tuple[int | None, int | None]] = []  # partitions and offsets
        self._acknowledged = self._refused = 0
        self._reason = ""  # of the first that was refused

    def send(self, key: bytes | None, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(
                    self._args.topic,
                    value,
                    key,
                    partition=self._partition,
                    timestamp=_NOW if self._args.timestamp is None else self._args.timestamp,
                    headers=self._headers,
                    on_delivery=self._delivered,
                )
            except BufferError:  # the client has as much as it may keep
                self._producer.poll(_POLL_SECONDS)
            else:
                break
        if sys.stdin.isatty():
            self._producer.flush()  # whoever types wants to see where it is
        else:
            self._producer.poll(0)
        self._tell()

    def finish(self) -> None:
        """Waits for all that was sent. Raises Failed if anything was not acknowledged."""
        while self._producer.flush(_POLL_SECONDS):
            self._tell()
        self._tell()
        if self._refused:
            count = self._refused + self._acknowledged
            raise Failed(
                f"{self._refused} of {count} records were not acknowledged: {self._reason}"
            )

    def _delivered(self, error: KafkaError | None, record: Message) -> None:
        """Called by the client, in the order of each partition. It may not be asked anything here:
        a question within a callback ends the process."""
        if error is not None:
            self._refused += 1
            self._reason = self._reason or in_words(error)
            return
        self._acknowledged += 1
        if not self._args.quiet:
            self._untold.append((record.partition(), record.offset()))

    def _tell(self) -> None:
        """Where the records are that were acknowledged meanwhile."""
        untold, self._untold = self._untold, []
        for partition, offset in untold:
            leader = self._partitions.leader(partition)
            told = {"topic": self._args.topic, "partition": partition, "offset": offset}
            if self._args.format == "jsonl":
                say_if_heard(json.dumps({**told, "leader": leader}))
            else:
                say_if_heard(f"{self._args.topic}-{partition}  offset {offset}  leader {leader}")
