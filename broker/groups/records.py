"""The records of `__consumer_offsets` say what a group has committed, and who was in it last.

This module knows bytes only. A key begins with its kind, a value with its version, in two bytes
each; a record without value is a tombstone. Every version that Kafka has written is read, and those
that Kafka 4 writes are written: its tools and its coordinators read ours.

    key kind 1   group, topic, partition    value: a committed offset, versions 0 to 4
    key kind 2   group                      value: a generation, versions 0 to 4

The records of consumer groups that are assigned by their coordinator (KIP-848) are in
broker/groups/consumer/consumer_records.py. Other kinds are those of share and streams groups.

Source: Kafka's OffsetCommitKey, OffsetCommitValue, GroupMetadataKey, GroupMetadataValue.
"""

from dataclasses import dataclass
from struct import Struct
from struct import error as struct_error
from uuid import UUID

from broker.coordination.fields import Fields, sized_bytes, sized_string
from broker.groups.consumer.consumer_records import (
    decode_consumer_change,
    encode_consumer_change,
)
from broker.groups.consumer.consumer_values import ConsumerChange
from wire.batch import Record
from wire.primitives import ZERO_UUID
from wire.varint import Malformed, uvarint

__all__ = [
    "Change",
    "CommittedOffset",
    "GroupChange",
    "GroupMetadata",
    "MemberMetadata",
    "OffsetChange",
    "decode_change",
    "encode_change",
]

_OFFSET_KEY = 1
_OFFSET_KEY_OLD = 0  # the same layout
_GROUP_KEY = 2

_OFFSET_VERSION = 4
_OFFSET_VERSION_EXPIRING = 1  # the only one with an expire timestamp
_GROUP_VERSION = 3
_NEWEST = 4
_FLEXIBLE_SINCE = 4  # in both values
_TOPIC_ID_TAG = 0

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int
    expire_timestamp_ms: int = -1  # -1: when the broker's retention says so
    topic_id: UUID = ZERO_UUID  # zero: the topic was not known


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMetadata:
    id: str
    instance_id: str | None = None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes = b""  # what it said under the protocol that was chosen
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadata:
    """A generation of a group; one without members is empty."""

    protocol_type: str
    generation: int
    protocol: str | None = None
    leader: str | None = None
    state_since_ms: int = -1
    members: tuple[MemberMetadata, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetChange:
    group_id: str
    topic: str
    partition: int
    committed: CommittedOffset | None  # None: it is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    group_id: str
    metadata: GroupMetadata | None  # None: the group is gone


Change = OffsetChange | GroupChange | ConsumerChange


# --- writing --------------------------------------------------------------------------------


def encode_change(change: Change) -> Record:
    match change:
        case OffsetChange():
            place = sized_string(change.topic) + _INT32.pack(change.partition)
            key = _INT16.pack(_OFFSET_KEY) + sized_string(change.group_id) + place
            value = None if change.committed is None else _offset_value(change.committed)
        case GroupChange():
            key = _INT16.pack(_GROUP_KEY) + sized_string(change.group_id)
            value = None if change.metadata is None else _group_value(change.metadata)
        case _:
            return encode_consumer_change(change)
    return Record(key=key, value=value)


def _offset_value(committed: CommittedOffset) -> bytes:
    if committed.expire_timestamp_ms >= 0:
        return (
            _INT16.pack(_OFFSET_VERSION_EXPIRING)
            + _INT64.pack(committed.offset)
            + sized_string(committed.metadata)
            + _INT64.pack(committed.commit_timestamp_ms)
            + _INT64.pack(committed.expire_timestamp_ms)
        )
    text = committed.metadata.encode()
    tags = b"\0"
    if committed.topic_id.int:
        tags = uvarint(1) + uvarint(_TOPIC_ID_TAG) + uvarint(16) + committed.topic_id.bytes
    return (
        _INT16.pack(_OFFSET_VERSION)
        + _INT64.pack(committed.offset)
        + _INT32.pack(committed.leader_epoch)
        + uvarint(len(text) + 1)
        + text
        + _INT64.pack(committed.commit_timestamp_ms)
        + tags
    )


def _group_value(metadata: GroupMetadata) -> bytes:
    parts = [
        _INT16.pack(_GROUP_VERSION),
        sized_string(metadata.protocol_type),
        _INT32.pack(metadata.generation),
        sized_string(metadata.protocol),
        sized_string(metadata.leader),
        _INT64.pack(metadata.state_since_ms),
        _INT32.pack(len(metadata.members)),
    ]
    for member in metadata.members:
        parts += (
            sized_string(member.id),
            sized_string(member.instance_id),
            sized_string(member.client_id),
            sized_string(member.client_host),
            _INT32.pack(member.rebalance_timeout_ms),
            _INT32.pack(member.session_timeout_ms),
            sized_bytes(member.subscription),
            sized_bytes(member.assignment),
        )
    return b"".join(parts)


# --- reading --------------------------------------------------------------------------------


def decode_change(record: Record) -> Change | None:
    """What a record changes; None for a kind that we do not know. Raises `Malformed`."""
    if record.key is None:
        raise Malformed(f"a record without a key, at offset {record.offset}")
    try:
        key = Fields(record.key)
        kind = key.int16()
        if kind in (_OFFSET_KEY_OLD, _OFFSET_KEY):
            return OffsetChange(
                group_id=key.string(),
                topic=key.string(),
                partition=key.int32(),
                committed=None if record.value is None else _read_offset(record.value),
            )
        if kind == _GROUP_KEY:
            return GroupChange(
                group_id=key.string(),
                metadata=None if record.value is None else _read_group(record.value),
            )
        return decode_consumer_change(kind, key, record.value)
    except (struct_error, IndexError, UnicodeDecodeError) as error:
        raise Malformed(f"the record at offset {record.offset}: {error}") from error


def _read_offset(value: bytes) -> CommittedOffset:
    fields = Fields(value)
    version = fields.version(newest=_NEWEST, flexible_since=_FLEXIBLE_SINCE)
    offset = fields.int64()
    leader_epoch = fields.int32() if version >= 3 else -1
    metadata = fields.string()
    commit_timestamp_ms = fields.int64()
    expire_timestamp_ms = fields.int64() if version == _OFFSET_VERSION_EXPIRING else -1
    topic_id = fields.tags().get(_TOPIC_ID_TAG, ZERO_UUID.bytes)
    if len(topic_id) != 16:
        raise Malformed(f"a topic id of {len(topic_id)} bytes")
    return CommittedOffset(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp_ms=commit_timestamp_ms,
        expire_timestamp_ms=expire_timestamp_ms,
        topic_id=UUID(bytes=topic_id),
    )


def _read_group(value: bytes) -> GroupMetadata:
    fields = Fields(value)
    version = fields.version(newest=_NEWEST, flexible_since=_FLEXIBLE_SINCE)
    metadata = GroupMetadata(
        protocol_type=fields.string(),
        generation=fields.int32(),
        protocol=fields.nullable_string(),
        leader=fields.nullable_string(),
        state_since_ms=fields.int64() if version >= 2 else -1,
        members=tuple(_read_member(fields, version) for _ in range(fields.count())),
    )
    fields.tags()
    return metadata


def _read_member(fields: Fields, version: int) -> MemberMetadata:
    id_ = fields.string()
    instance_id = fields.nullable_string() if version >= 3 else None
    client_id, client_host = fields.string(), fields.string()
    rebalance_timeout_ms = fields.int32() if version >= 1 else -1
    session_timeout_ms = fields.int32()
    member = MemberMetadata(
        id=id_,
        instance_id=instance_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=session_timeout_ms if version < 1 else rebalance_timeout_ms,
        session_timeout_ms=session_timeout_ms,
        subscription=fields.sized(),
        assignment=fields.sized(),
    )
    fields.tags()
    return member
