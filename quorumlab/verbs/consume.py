"""`quorumlab consume`: the records of a topic, with partition, offset and leader."""

import json
import re
import sys
from collections.abc import Iterator
from itertools import islice
from types import SimpleNamespace
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
from quorumlab.output import complain, one_line
from quorumlab.verbs.common import in_bounds
from quorumlab.verbs.librdkafka import (
    TIMEOUT_SECONDS,
    Partitions,
    in_words,
    kafka_errors_as_failed,
    settings,
)
from wire.primitives import INT32_MAX

__all__ = ["run"]

_POLL_SECONDS = 0.2
_RECORDS_AT_ONCE = 500
_NO_GROUP = "quorumlab"  # librdkafka wants a name; nothing is committed under it
_RESETS = {"beginning": "earliest", "end": "latest"}  # where there is no offset, or no such one
_PLACES = {"beginning": OFFSET_BEGINNING, "end": OFFSET_END}
_FROM = re.compile(r"([@-]?)(\d{1,18})")  # a time, the last so many, or an offset


def run(args: SimpleNamespace) -> int:
    where: str = vars(args)["from"]  # which is a word of Python's
    in_bounds(args, count=(0, INT32_MAX))
    if where not in _PLACES and not _FROM.fullmatch(where):
        raise UsageError(f"--from {where}: beginning, end, an offset, -N or @MS")
    if args.group == "":
        raise UsageError("--group: it is empty")
    if args.group and (args.partition or args.until_end):
        raise UsageError("--group: the group says which partitions, and reading has no end")
    if args.group and where not in _PLACES:
        raise UsageError("--group: --from is beginning or end, for where it has read nothing")
    how = {
        "group.id": args.group or _NO_GROUP,
        "enable.auto.commit": bool(args.group),
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": _RESETS.get(where, "error"),
        "isolation.level": args.isolation_level,
        "fetch.wait.max.ms": 100,
    }
    with kafka_errors_as_failed():
        consumer = Consumer(settings(args) | how)
        try:
            partitions = Partitions(consumer, args.topic)
            for record in islice(_records(consumer, args, where, partitions), args.count):
                sys.stdout.buffer.write(_shown(record, args.format, partitions))
                if args.group:  # librdkafka commits stored offsets periodically, and on close
                    sys.stdout.buffer.flush()  # what nobody has got is not read
                    consumer.store_offsets(record)
        finally:
            sys.stdout.buffer.flush()
            consumer.close()
    return 0


def _records(
    consumer: Consumer, args: SimpleNamespace, where: str, partitions: Partitions
) -> Iterator[Message]:
    """Yields records for ever; with --until-end, until each partition's end was reached once."""
    unread = set(map(partitions.check, args.partition)) or set(partitions.numbers)
    if args.group:
        consumer.subscribe([args.topic])
    else:
        if told := partitions.without_leader(unread):
            if args.until_end:
                raise Failed(f"{told}: where it ends is not known")
            complain(f"{told}; waiting for one")
        consumer.assign(_begin(consumer, args.topic, sorted(unread), where))
    while unread or not args.until_end:
        sys.stdout.buffer.flush()
        for record in consumer.consume(_RECORDS_AT_ONCE, _POLL_SECONDS):
            error = record.error()
            if error is None:
                yield record
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard(record.partition())
            else:
                raise Failed(f"{args.topic}-{record.partition()}: {in_words(error)}")


def _begin(
    consumer: Consumer, topic: str, partitions: list[int], where: str
) -> list[TopicPartition]:
    """Each partition with the offset to begin at."""
    found = _FROM.fullmatch(where)
    sign, number = (found[1], int(found[2])) if found else ("", _PLACES[where])
    places = [TopicPartition(topic, partition, number) for partition in partitions]
    if sign == "@":
        return consumer.offsets_for_times(places, TIMEOUT_SECONDS)
    if sign == "-":
        for place in places:
            start, end = consumer.get_watermark_offsets(place, TIMEOUT_SECONDS)
            place.offset = max(start, end - number)
    return places


def _shown(record: Message, form: str, partitions: Partitions) -> bytes:
    value = record.value()
    if form == "value":
        return (value or b"") + b"\n"
    told: dict[str, Any] = {
        "topic": record.topic(),
        "partition": record.partition(),
        "offset": record.offset(),
        "leader": partitions.leader(record.partition()),
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
