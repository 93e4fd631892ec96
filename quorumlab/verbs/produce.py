"""`quorumlab produce`: each line of the input becomes a record; tells where each one is."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from confluent_kafka import KafkaError, Message, Producer

from quorumlab.arguments import Failed
from quorumlab.output import say
from quorumlab.verbs.common import pairs
from quorumlab.verbs.librdkafka import failing_in_words, partition_in, settings, topic_in

__all__ = ["run"]

_POLL_SECONDS = 0.1
_ANY_PARTITION = -1
_NOW = 0  # as a timestamp, to librdkafka


@dataclass(slots=True)
class _Sent:
    """What became of the records so far."""

    leaders: Mapping[int, int]
    is_quiet: bool
    form: str
    acknowledged: int = 0
    refused: list[str] = field(default_factory=list)

    def delivered(self, error: KafkaError | None, record: Message) -> None:
        """Told by the client, in the order of each partition."""
        if error is not None:
            self.refused.append(f"{error.name().removeprefix('_')}: {error.str()}")
            return
        self.acknowledged += 1
        if self.is_quiet:
            return
        partition = record.partition()
        assert partition is not None
        told = {
            "topic": record.topic(),
            "partition": partition,
            "offset": record.offset(),
            "leader": self.leaders.get(partition, -1),
        }
        if self.form == "jsonl":
            say(json.dumps(told))
        else:
            say("{topic}-{partition}  offset {offset}  leader {leader}".format(**told))


def run(args: argparse.Namespace) -> int:
    headers = [(name, value.encode()) for name, value in pairs("--header", args.header)]
    separator = (args.key_separator or "").encode()
    how = {
        "enable.idempotence": True,
        "compression.type": args.compression,
        "linger.ms": 5,
        "message.timeout.ms": int(args.timeout * 1000),
    }
    with failing_in_words():
        producer = Producer(settings(args) | how)
        leaders = topic_in(producer, args.topic)
        if args.partition is not None:
            partition_in(leaders, args.topic, args.partition)
        sent = _Sent(leaders, args.quiet, args.format)
        try:
            for key, value in _records(sys.stdin.buffer, separator, args.count):
                _send(producer, args, key, value, headers, sent)
        finally:  # also at Ctrl-C: what was read is sent
            producer.flush()
    if sent.refused:
        count = len(sent.refused)
        raise Failed(
            f"{count} of {count + sent.acknowledged} records were not acknowledged: "
            f"{sent.refused[0]}"
        )
    return 0


def _records(
    lines: BinaryIO, separator: bytes, count: int | None
) -> Iterator[tuple[bytes | None, bytes]]:
    """Key and value of each line; a line without the separator has no key."""
    for number, line in enumerate(lines, 1):
        text = line.removesuffix(b"\n")
        key, found, value = text.partition(separator) if separator else (b"", b"", b"")
        yield (key, value) if found else (None, text)
        if number == count:
            return


def _send(
    producer: Producer,
    args: argparse.Namespace,
    key: bytes | None,
    value: bytes,
    headers: list[tuple[str, bytes]],
    sent: _Sent,
) -> None:
    where: dict[str, Any] = {
        "partition": _ANY_PARTITION if args.partition is None else args.partition,
        "timestamp": _NOW if args.timestamp is None else args.timestamp,
        "headers": headers,
        "on_delivery": sent.delivered,
    }
    while True:
        try:
            producer.produce(args.topic, value, key, **where)
        except BufferError:  # the client has as much as it may keep
            producer.poll(_POLL_SECONDS)
        else:
            break
    if sys.stdin.isatty():
        producer.flush()  # whoever types wants to see where it is
    else:
        producer.poll(0)
