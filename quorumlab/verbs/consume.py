"""`quorumlab consume`: the records of a topic, with partition, offset and leader."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    Message,
    TopicPartition,
)

from quorumlab.arguments import Failed, UsageError
from quorumlab.output import one_line
from quorumlab.verbs.librdkafka import (
    TIMEOUT_SECONDS,
    failing_in_words,
    partition_in,
    settings,
    topic_in,
)

__all__ = ["run"]

_POLL_SECONDS = 0.2
_MANY = 500  # records that are taken at a time
_NO_GROUP = "quorumlab"  # librdkafka wants a name; nothing is committed under it
_BEGINNING, _END = "beginning", "end"


def run(args: argparse.Namespace) -> int:
    where: str = vars(args)["from"]  # which is a word of Python's
    if args.group and (args.partition or args.until_end):
        raise UsageError("--group: the group says which partitions, and reading has no end")
    if args.group and where not in (_BEGINNING, _END):
        raise UsageError("--group: --from is beginning or end, for where it has read nothing")
    how = {
        "group.id": args.group or _NO_GROUP,
        "enable.auto.commit": bool(args.group),
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "latest" if where == _END else "earliest",
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 100,
    }
    with failing_in_words():
        consumer = Consumer(settings(args) | how)
        try:
            leaders = topic_in(consumer, args.topic)
            for record in islice(_records(consumer, args, where, leaders), args.count):
                sys.stdout.buffer.write(_shown(record, args.format, leaders))
                if args.group:
                    consumer.store_offsets(record)  # it is committed in time, and at the end
        finally:
            sys.stdout.buffer.flush()
            consumer.close()
    return 0


def _records(
    consumer: Consumer, args: argparse.Namespace, where: str, leaders: Mapping[int, int]
) -> Iterator[Message]:
    """Those that are there and those that come, or those until the end of each partition."""
    unread = {partition_in(leaders, args.topic, each) for each in args.partition} or set(leaders)
    if args.group:
        consumer.subscribe([args.topic])
    else:
        places = [TopicPartition(args.topic, each) for each in sorted(unread)]
        consumer.assign(_from(consumer, places, where))
    while unread or not args.until_end:
        sys.stdout.buffer.flush()
        for record in consumer.consume(_MANY, _POLL_SECONDS):
            error = record.error()
            if error is None:
                yield record
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard(record.partition())
            else:
                raise Failed(f"{error.name().removeprefix('_')}: {error.str()}")


def _from(consumer: Consumer, places: list[TopicPartition], where: str) -> list[TopicPartition]:
    """The places, each with the offset to begin at. Raises UsageError for what names none."""
    number = where[where[:1] in ("@", "-") :]
    if where == _BEGINNING:
        offsets = [OFFSET_BEGINNING for _ in places]
    elif where == _END:
        offsets = [OFFSET_END for _ in places]
    elif not number.isdecimal():
        raise UsageError(f"--from {where}: beginning, end, an offset, -N or @MS")
    elif where.startswith("@"):
        asked = [TopicPartition(each.topic, each.partition, int(number)) for each in places]
        return consumer.offsets_for_times(asked, TIMEOUT_SECONDS)
    elif where.startswith("-"):
        bounds = [consumer.get_watermark_offsets(each, TIMEOUT_SECONDS) for each in places]
        offsets = [max(start, end - int(number)) for start, end in bounds]
    else:
        offsets = [int(number) for _ in places]
    return [
        TopicPartition(each.topic, each.partition, offset)
        for each, offset in zip(places, offsets, strict=True)
    ]


def _shown(record: Message, form: str, leaders: Mapping[int, int]) -> bytes:
    value = record.value()
    if form == "value":
        return (value or b"") + b"\n"
    told: dict[str, Any] = {
        "topic": record.topic(),
        "partition": record.partition(),
        "offset": record.offset(),
        "leader": leaders.get(record.partition() or 0, -1),
        "timestamp": record.timestamp()[1],
        "key": _text(record.key()),
        "value": _text(value),
        "headers": [[each[0], _text(each[1])] for each in record.headers() or ()],
    }
    if form == "jsonl":
        return json.dumps(told).encode() + b"\n"
    key = "" if told["key"] is None else f"{one_line(told['key'])}  "
    text = "null" if value is None else one_line(told["value"])
    headers = "".join(f"  {name}={one_line(each or '')}" for name, each in told["headers"])
    place = "{topic}-{partition}  offset {offset}  leader {leader}".format(**told)
    return f"{place}  {key}{text}{headers}\n".encode()


def _text(value: bytes | str | None) -> str | None:
    """What is no text is shown with its bytes escaped."""
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
