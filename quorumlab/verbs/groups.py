"""`quorumlab groups`: the consumer groups of a cluster, and how far they have read."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, TypeVar

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from quorumlab.arguments import Failed
from quorumlab.output import answer, table_lines
from quorumlab.verbs.librdkafka import TIMEOUT_SECONDS, kafka_errors_as_failed, settings

__all__ = ["delete_group", "describe_group", "list_groups"]

Result = TypeVar("Result")
Place = tuple[str, int]  # topic, partition


def list_groups(args: SimpleNamespace) -> int:
    with kafka_errors_as_failed():
        client = AdminClient(settings(args))  # keep it: its futures fail once it is collected
        listed = _result(client.list_consumer_groups())
    rows = [
        {"group": each.group_id, "state": each.state.name.lower(), "type": each.type.name.lower()}
        for each in sorted(listed.valid, key=lambda each: each.group_id)
    ]
    answer(args.format, rows, table_lines(rows, ("group", "state", "type")))
    return 0


def describe_group(args: SimpleNamespace) -> int:
    with kafka_errors_as_failed():
        client = AdminClient(settings(args))
        group = _result(client.describe_consumer_groups([args.group])[args.group])
        asked = [ConsumerGroupTopicPartitions(args.group)]
        committed = _result(client.list_consumer_group_offsets(asked)[args.group]).topic_partitions
        owners = {
            (each.topic, each.partition): member.member_id
            for member in group.members
            for each in member.assignment.topic_partitions
        }
        offsets = {(each.topic, each.partition): each.offset for each in committed}
        places = sorted({*owners, *offsets})
        ends = _ends(client, places)
    if group.state is ConsumerGroupState.DEAD and not committed:
        raise Failed(f"no group {args.group!r}: `quorumlab groups list` tells which there are")
    rows = [_row(at, offsets.get(at), ends.get(at), owners.get(at)) for at in places]
    told = {
        "group": group.group_id,
        "state": group.state.name.lower(),
        "coordinator": group.coordinator.id if group.coordinator else None,
        "assignor": group.partition_assignor,
        "members": [
            {"member": each.member_id, "client": each.client_id, "host": each.host}
            for each in group.members
        ],
        "partitions": rows,
    }
    answer(args.format, told, _lines(told))
    return 0


def delete_group(args: SimpleNamespace) -> int:
    with kafka_errors_as_failed():
        client = AdminClient(settings(args))
        _result(client.delete_consumer_groups([args.group])[args.group])
    answer(args.format, {"group": args.group}, [f"Deleted group {args.group}."])
    return 0


def _result(future: "Future[Result]") -> Result:
    return future.result(TIMEOUT_SECONDS)


def _ends(client: AdminClient, places: Sequence[Place]) -> Mapping[Place, int]:
    """Where each partition ends; nothing for those that do not answer."""
    end: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    asked = {TopicPartition(*place): end for place in places}
    found = {}
    for place, future in client.list_offsets(asked).items() if asked else ():
        try:
            found[place.topic, place.partition] = _result(future).offset
        except KafkaException:  # it has no leader, or is gone: its end is not known
            continue
    return found


def _row(place: Place, committed: int | None, end: int | None, owner: str | None) -> dict[str, Any]:
    topic, partition = place
    return {
        "topic": topic,
        "partition": partition,
        "committed": committed,
        "end": end,
        "lag": None if end is None or committed is None else end - committed,
        "member": owner,
    }


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    coordinator = "none" if told["coordinator"] is None else told["coordinator"]
    count = len(told["members"])
    yield (
        f"{told['group']}: {told['state']}, coordinator {coordinator}, "
        f"{count} member{'' if count == 1 else 's'}"
    )
    yield from table_lines(
        told["partitions"], ("topic", "partition", "committed", "end", "lag", "member")
    )
