"""The records of `__consumer_offsets` that a group of the consumer protocol consists of.

This module knows bytes only. A key is its kind, and the names of what it is about. A value is its
version, which is 0, and a flexible struct; a record without value is a tombstone.

    key kind 3   group            value: the group's epoch, and a hash of its topics' metadata
    key kind 5   group, member    value: what the member says of itself
    key kind 6   group            value: epoch and time of the target assignment
    key kind 7   group, member    value: the target of the member
    key kind 8   group, member    value: what the member has, and since which epoch
    key kind 16  group, pattern   value: the topics that match the pattern

Kind 4 is what kind 3 held before Kafka 4.1: nothing that is not found out anew.

Source: Kafka's CoordinatorRecordType and ConsumerGroup*Value; KIP-848, KIP-1251.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from struct import Struct
from typing import Annotated, assert_never
from uuid import UUID

from broker.coordination.fields import Fields, sized_string
from broker.groups.consumer.consumer_values import (
    ClassicSide,
    ConsumerChange,
    Current,
    CurrentChange,
    EpochChange,
    MemberState,
    PatternChange,
    Resolved,
    Subscription,
    SubscriptionChange,
    TargetChange,
    TargetEpochChange,
    TopicPartition,
)
from wire.batch import Record
from wire.message import Message
from wire.record_schema import Int8, Int32, Int64, Tag, Uuid, decode_struct, encode_struct
from wire.varint import Malformed, uvarint

__all__ = ["by_topic", "decode_consumer_change", "encode_consumer_change"]

_INT16 = Struct(">h")
_VERSION = _INT16.pack(0)
_CLASSIC_TAG = 0  # of a subscription


class _Kind(IntEnum):
    """The first two bytes of a record's key."""

    EPOCH = 3
    SUBSCRIPTION = 5
    TARGET_EPOCH = 6
    TARGET = 7
    CURRENT = 8
    PATTERN = 16


class GroupEpochValue(Message):
    epoch: Int32
    metadata_hash: Annotated[Int64, Tag(0)] = 0


class TargetEpochValue(Message):
    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, Tag(0)] = 0


class TargetTopic(Message):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


class TargetValue(Message):
    topic_partitions: tuple[TargetTopic, ...]


class CurrentTopic(Message):
    topic_id: Uuid
    partitions: tuple[Int32, ...]
    assignment_epochs: Annotated[tuple[Int32, ...], Tag(0)] = ()  # one a partition (KIP-1251)


class CurrentValue(Message):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[CurrentTopic, ...]
    partitions_pending_revocation: tuple[CurrentTopic, ...]


# --- writing --------------------------------------------------------------------------------


def encode_consumer_change(change: ConsumerChange) -> Record:
    match change:
        case EpochChange():
            return _record(_key(_Kind.EPOCH, change.group_id), _epoch(change))
        case SubscriptionChange():
            return _with_classic(change, _key(_Kind.SUBSCRIPTION, *_member(change)))
        case TargetEpochChange():
            return _record(_key(_Kind.TARGET_EPOCH, change.group_id), _target_epoch(change))
        case TargetChange(partitions=partitions):
            target = None if partitions is None else _target(partitions)
            return _record(_key(_Kind.TARGET, *_member(change)), target)
        case CurrentChange(current=current):
            had = None if current is None else _current(current)
            return _record(_key(_Kind.CURRENT, *_member(change)), had)
        case PatternChange():
            return _record(_key(_Kind.PATTERN, change.group_id, change.pattern), change.resolved)
        case _:
            assert_never(change)


def _with_classic(change: SubscriptionChange, key: bytes) -> Record:
    """Kafka writes a nullable struct in a tagged field: 0 if it is none, or 1 and the struct."""
    said = change.subscription
    if said is None:
        return Record(key=key, value=None)
    side = b"\0" if change.classic is None else b"\1" + encode_struct(change.classic, 0)
    tags = uvarint(1) + uvarint(_CLASSIC_TAG) + uvarint(len(side)) + side
    return Record(key=key, value=_VERSION + _untagged(said) + tags)


def _untagged(said: Subscription) -> bytes:
    return encode_struct(said, 0)[:-1]  # its count of tagged fields, which is 0


def _member(change: SubscriptionChange | TargetChange | CurrentChange) -> tuple[str, str]:
    return change.group_id, change.member_id


def _key(kind: int, *names: str) -> bytes:
    return _INT16.pack(kind) + b"".join(map(sized_string, names))


def _record(key: bytes, value: Message | None) -> Record:
    return Record(key=key, value=None if value is None else _VERSION + encode_struct(value, 0))


def _epoch(change: EpochChange) -> GroupEpochValue | None:
    if change.epoch is None:
        return None
    return GroupEpochValue(epoch=change.epoch, metadata_hash=change.metadata_hash)


def _target_epoch(change: TargetEpochChange) -> TargetEpochValue | None:
    if change.epoch is None:
        return None
    return TargetEpochValue(assignment_epoch=change.epoch, assignment_timestamp=change.timestamp_ms)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[UUID, tuple[int, ...]]:
    """In order."""
    found: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(partitions):
        found.setdefault(topic_id, []).append(index)
    return {topic_id: tuple(indexes) for topic_id, indexes in found.items()}


def _target(partitions: Iterable[TopicPartition]) -> TargetValue:
    return TargetValue(
        topic_partitions=tuple(
            TargetTopic(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic(partitions).items()
        )
    )


def _current(current: Current) -> CurrentValue:
    return CurrentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state.value,
        assigned_partitions=_with_epochs(current.assigned),
        partitions_pending_revocation=_with_epochs(current.revoking),
    )


def _with_epochs(partitions: Mapping[TopicPartition, int]) -> tuple[CurrentTopic, ...]:
    return tuple(
        CurrentTopic(
            topic_id=topic_id,
            partitions=indexes,
            assignment_epochs=tuple(partitions[topic_id, index] for index in indexes),
        )
        for topic_id, indexes in by_topic(partitions).items()
    )


# --- reading --------------------------------------------------------------------------------


def decode_consumer_change(kind: int, key: Fields, value: bytes | None) -> ConsumerChange | None:
    """The change that a record stands for; None for a kind that is not one of these.

    `key` is read up to its kind. Raises `Malformed`, and what `Fields` raise.
    """
    if value is not None and value[:2] != _VERSION:
        if kind in set(_Kind):
            raise Malformed(f"a value of version {value[:2].hex()} under a key of kind {kind}")
        return None
    match kind:
        case _Kind.EPOCH:
            return _read_epoch(key.string(), value)
        case _Kind.SUBSCRIPTION:
            return _read_subscription(key.string(), key.string(), value)
        case _Kind.TARGET_EPOCH:
            return _read_target_epoch(key.string(), value)
        case _Kind.TARGET:
            target = None if value is None else decode_struct(TargetValue, 0, value, 2)
            return TargetChange(
                group_id=key.string(),
                member_id=key.string(),
                partitions=None
                if target is None
                else frozenset(
                    (topic.topic_id, index)
                    for topic in target.topic_partitions
                    for index in topic.partitions
                ),
            )
        case _Kind.CURRENT:
            return CurrentChange(
                group_id=key.string(),
                member_id=key.string(),
                current=None if value is None else _read_current(value),
            )
        case _Kind.PATTERN:
            resolved = None if value is None else decode_struct(Resolved, 0, value, 2)
            return PatternChange(group_id=key.string(), pattern=key.string(), resolved=resolved)
        case _:
            return None


def _read_epoch(group_id: str, value: bytes | None) -> EpochChange:
    if value is None:
        return EpochChange(group_id=group_id, epoch=None)
    read = decode_struct(GroupEpochValue, 0, value, 2)
    return EpochChange(group_id=group_id, epoch=read.epoch, metadata_hash=read.metadata_hash)


def _read_subscription(group_id: str, member_id: str, value: bytes | None) -> SubscriptionChange:
    if value is None:
        return SubscriptionChange(group_id=group_id, member_id=member_id, subscription=None)
    said = decode_struct(Subscription, 0, value, 2)  # passes over tagged fields
    rest = Fields(_VERSION + value[2 + len(_untagged(said)) :])
    rest.version(newest=0, flexible_since=0)
    side = rest.tags().get(_CLASSIC_TAG, b"\0")
    classic = None if side == b"\0" else decode_struct(ClassicSide, 0, side, 1)
    return SubscriptionChange(
        group_id=group_id, member_id=member_id, subscription=said, classic=classic
    )


def _read_target_epoch(group_id: str, value: bytes | None) -> TargetEpochChange:
    if value is None:
        return TargetEpochChange(group_id=group_id, epoch=None)
    read = decode_struct(TargetEpochValue, 0, value, 2)
    return TargetEpochChange(
        group_id=group_id, epoch=read.assignment_epoch, timestamp_ms=read.assignment_timestamp
    )


def _read_current(value: bytes) -> Current:
    read = decode_struct(CurrentValue, 0, value, 2)
    try:
        state = MemberState(read.state)
    except ValueError:
        state = MemberState.UNKNOWN
    return Current(
        epoch=read.member_epoch,
        previous_epoch=read.previous_member_epoch,
        state=state,
        assigned=_read_epochs(read.assigned_partitions, read.member_epoch),
        revoking=_read_epochs(read.partitions_pending_revocation, read.member_epoch),
    )


def _read_epochs(topics: tuple[CurrentTopic, ...], epoch: int) -> dict[TopicPartition, int]:
    """Before Kafka 4.3 partitions had no epochs: that of the member counts."""
    found = {}
    for topic in topics:
        epochs = topic.assignment_epochs or (epoch,) * len(topic.partitions)
        for index, since in zip(topic.partitions, epochs, strict=False):
            found[topic.topic_id, index] = since
    return found
