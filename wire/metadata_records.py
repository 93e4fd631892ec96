"""The records of the metadata log, as tables: one class a record, one line a field.

Read a field as a row of KIP-631's schema: type, first version (`Since`), tag (`Tag`), default.
`_RECORD_TYPES` at the end says for each record its key and which version is written at which
metadata.version. Nothing else in this project knows a record's version.

A record's value is framed: frame version 1, record key, record version (unsigned varints), then
the flexible struct, which must end where the value ends.

What a record means to the image is decided elsewhere: this file knows bytes only.

Source: KIP-631 and its successors (KIP-48, 546, 778, 801, 841, 858, 866, 868, 900, 919, 966, 1066);
Kafka's metadata/common/metadata/*.json.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Annotated, Any

from wire.message import Message
from wire.record_schema import (
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Since,
    String,
    Tag,
    UInt16,
    UnknownRecord,
    Uuid,
    carries,
    decode_struct,
    reduced,
    struct_decoder,
    struct_encoder,
)
from wire.varint import Buffer, read_uvarint, uvarint

__all__ = [
    "DEFAULT_METADATA_VERSION",
    "LEADER_UNCHANGED",
    "RECORD_TYPES",
    "RECOVERY_UNCHANGED",
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "BeginTransactionRecord",
    "BrokerEndpoint",
    "BrokerFeature",
    "BrokerRegistrationChangeRecord",
    "ClearElrRecord",
    "ClientQuotaRecord",
    "ConfigRecord",
    "ControllerEndpoint",
    "ControllerFeature",
    "DelegationTokenRecord",
    "EndTransactionRecord",
    "FeatureLevelRecord",
    "FenceBrokerRecord",
    "MetadataRecord",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "QuotaEntity",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveTopicRecord",
    "RemoveUserScramCredentialRecord",
    "TopicRecord",
    "UnfenceBrokerRecord",
    "UnregisterBrokerRecord",
    "UnregisterControllerRecord",
    "UserScramCredentialRecord",
    "ZkMigrationStateRecord",
    "decode_record",
    "encode_record",
    "expressed",
    "read_frame",
    "record_frame",
    "record_version",
]

DEFAULT_METADATA_VERSION = 33  # 4.4-IV2: the production level of Kafka 4.4
LEADER_UNCHANGED = -2  # of PartitionChangeRecord.leader; -1 is "no leader"
RECOVERY_UNCHANGED = -1  # of PartitionChangeRecord.leader_recovery_state


class MetadataRecord(Message):
    """A record of the metadata log."""


# --- brokers and controllers ----------------------------------------------------------------


class BrokerEndpoint(Message):
    name: String  # of the listener
    host: String
    port: UInt16
    security_protocol: Int16  # 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL


class BrokerFeature(Message):
    name: String
    min_supported_version: Int16
    max_supported_version: Int16


ControllerEndpoint = BrokerEndpoint  # the same fields in the same order
ControllerFeature = BrokerFeature


class RegisterBrokerRecord(MetadataRecord):
    broker_id: Int32
    is_migrating_zk_broker: Annotated[Bool, Since(2)] = False
    incarnation_id: Uuid
    broker_epoch: Int64
    end_points: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...]
    rack: String | None
    fenced: Bool = True
    in_controlled_shutdown: Annotated[Bool, Since(1)] = False
    log_dirs: Annotated[tuple[Uuid, ...], Since(3), Tag(0)] = ()
    cordoned_log_dirs: Annotated[tuple[Uuid, ...] | None, Since(4), Tag(1)] = None


class UnregisterBrokerRecord(MetadataRecord):
    broker_id: Int32
    broker_epoch: Int64


class FenceBrokerRecord(MetadataRecord):
    id: Int32
    epoch: Int64


class UnfenceBrokerRecord(MetadataRecord):
    id: Int32
    epoch: Int64


class BrokerRegistrationChangeRecord(MetadataRecord):
    broker_id: Int32
    broker_epoch: Int64
    fenced: Annotated[Int8, Tag(0)] = 0  # 1 fence, -1 unfence, 0 no change
    in_controlled_shutdown: Annotated[Int8, Since(1), Tag(1)] = 0  # 1 entered, 0 no change
    log_dirs: Annotated[tuple[Uuid, ...], Since(2), Tag(2)] = ()  # replaces, unless empty
    cordoned_log_dirs: Annotated[tuple[Uuid, ...] | None, Since(3), Tag(3)] = (
        None  # null: no change
    )


class RegisterControllerRecord(MetadataRecord):
    controller_id: Int32
    incarnation_id: Uuid
    zk_migration_ready: Bool
    end_points: tuple[ControllerEndpoint, ...]
    features: tuple[ControllerFeature, ...]


class UnregisterControllerRecord(MetadataRecord):
    controller_id: Int32


# --- topics and partitions ------------------------------------------------------------------


class TopicRecord(MetadataRecord):
    name: String
    topic_id: Uuid


class RemoveTopicRecord(MetadataRecord):
    topic_id: Uuid


class PartitionRecord(MetadataRecord):
    partition_id: Int32
    topic_id: Uuid
    replicas: tuple[Int32, ...]
    isr: tuple[Int32, ...]
    removing_replicas: tuple[Int32, ...] = ()
    adding_replicas: tuple[Int32, ...] = ()
    leader: Int32  # -1 none
    leader_recovery_state: Annotated[Int8, Tag(0)] = 0  # 0 recovered, 1 recovering
    leader_epoch: Int32
    partition_epoch: Int32
    directories: Annotated[tuple[Uuid, ...], Since(1)] = ()  # parallel to replicas
    eligible_leader_replicas: Annotated[tuple[Int32, ...] | None, Since(2), Tag(1)] = None
    last_known_elr: Annotated[tuple[Int32, ...] | None, Since(2), Tag(2)] = None


class PartitionChangeRecord(MetadataRecord):
    """None, LEADER_UNCHANGED and RECOVERY_UNCHANGED leave a field of the partition as it is."""

    partition_id: Int32
    topic_id: Uuid
    isr: Annotated[tuple[Int32, ...] | None, Tag(0)] = None
    leader: Annotated[Int32, Tag(1)] = LEADER_UNCHANGED  # -1 none
    replicas: Annotated[tuple[Int32, ...] | None, Tag(2)] = None
    removing_replicas: Annotated[tuple[Int32, ...] | None, Tag(3)] = None
    adding_replicas: Annotated[tuple[Int32, ...] | None, Tag(4)] = None
    leader_recovery_state: Annotated[Int8, Tag(5)] = RECOVERY_UNCHANGED
    directories: Annotated[tuple[Uuid, ...] | None, Since(1), Tag(8)] = None
    eligible_leader_replicas: Annotated[tuple[Int32, ...] | None, Since(2), Tag(6)] = None
    last_known_elr: Annotated[tuple[Int32, ...] | None, Since(2), Tag(7)] = None


class ClearElrRecord(MetadataRecord):
    """Forgets the eligible leader replicas of a topic, or of all topics if the name is empty."""

    topic_name: String = ""


# --- configs, features, producer ids --------------------------------------------------------


class ConfigRecord(MetadataRecord):
    resource_type: Int8  # 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    resource_name: String  # "" of type 4: the default of the cluster
    name: String
    value: String | None  # null deletes


class FeatureLevelRecord(MetadataRecord):
    name: String
    feature_level: Int16  # 0 removes


class ProducerIdsRecord(MetadataRecord):
    broker_id: Int32
    broker_epoch: Int64
    next_producer_id: Int64  # the first one behind the allocated block


# --- security and quotas --------------------------------------------------------------------


class DelegationTokenRecord(MetadataRecord):
    owner: String  # principals are `Type:name`
    requester: String
    renewers: tuple[String, ...]
    issue_timestamp: Int64
    max_timestamp: Int64
    expiration_timestamp: Int64
    token_id: String


class RemoveDelegationTokenRecord(MetadataRecord):
    token_id: String


class UserScramCredentialRecord(MetadataRecord):
    name: String
    mechanism: Int8  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    salt: Bytes
    stored_key: Bytes
    server_key: Bytes
    iterations: Int32


class RemoveUserScramCredentialRecord(MetadataRecord):
    name: String
    mechanism: Int8


class QuotaEntity(Message):
    entity_type: String  # user, client-id, ip
    entity_name: String | None  # null: the default entity


class ClientQuotaRecord(MetadataRecord):
    entity: tuple[QuotaEntity, ...]
    key: String
    value: Float64
    remove: Bool


class AccessControlEntryRecord(MetadataRecord):
    id: Uuid
    resource_type: Int8  # 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user
    resource_name: String
    pattern_type: Int8  # 3 literal, 4 prefixed
    principal: String
    host: String
    operation: Int8
    permission_type: Int8  # 2 deny, 3 allow


class RemoveAccessControlEntryRecord(MetadataRecord):
    id: Uuid


# --- the log itself -------------------------------------------------------------------------


class NoOpRecord(MetadataRecord):
    """Moves the high watermark, and with it every follower's idea of it."""


class ZkMigrationStateRecord(MetadataRecord):
    zk_migration_state: Int8  # 0 none, 1 migration, 2 pre-migration, 3 post-migration, 4 zk


class BeginTransactionRecord(MetadataRecord):
    name: Annotated[String | None, Tag(0)] = None


class EndTransactionRecord(MetadataRecord):
    pass


class AbortTransactionRecord(MetadataRecord):
    reason: Annotated[String | None, Tag(0)] = None


# --- keys and versions ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _RecordType:
    """`written` maps a metadata.version to the record version that is written from it on.

    None: from there on, the record is not written at all.
    """

    key: int
    type: type[MetadataRecord]
    written: Mapping[int, int | None]

    @property
    def versions(self) -> range:
        return range(max(version or 0 for version in self.written.values()) + 1)


_RECORD_TYPES = (
    _RecordType(0, RegisterBrokerRecord, {1: 0, 7: 1, 8: 2, 17: 3, 30: 4}),
    _RecordType(1, UnregisterBrokerRecord, {1: 0}),
    _RecordType(2, TopicRecord, {1: 0}),
    _RecordType(3, PartitionRecord, {1: 0, 17: 1, 23: 2}),
    _RecordType(4, ConfigRecord, {1: 0}),
    _RecordType(5, PartitionChangeRecord, {1: 0, 17: 1, 23: 2}),
    _RecordType(7, FenceBrokerRecord, {1: 0, 6: None}),
    _RecordType(8, UnfenceBrokerRecord, {1: 0, 6: None}),
    _RecordType(9, RemoveTopicRecord, {1: 0}),
    _RecordType(10, DelegationTokenRecord, {14: 0}),
    _RecordType(11, UserScramCredentialRecord, {11: 0}),
    _RecordType(12, FeatureLevelRecord, {4: 0}),
    _RecordType(14, ClientQuotaRecord, {1: 0}),
    _RecordType(15, ProducerIdsRecord, {1: 0}),
    _RecordType(17, BrokerRegistrationChangeRecord, {6: 0, 7: 1, 17: 2, 30: 3}),
    _RecordType(18, AccessControlEntryRecord, {1: 0}),
    _RecordType(19, RemoveAccessControlEntryRecord, {1: 0}),
    _RecordType(20, NoOpRecord, {5: 0}),
    _RecordType(21, ZkMigrationStateRecord, {8: 0}),
    _RecordType(22, RemoveUserScramCredentialRecord, {11: 0}),
    _RecordType(23, BeginTransactionRecord, {13: 0}),
    _RecordType(24, EndTransactionRecord, {13: 0}),
    _RecordType(25, AbortTransactionRecord, {13: 0}),
    _RecordType(26, RemoveDelegationTokenRecord, {14: 0}),
    _RecordType(27, RegisterControllerRecord, {15: 0}),
    _RecordType(28, ClearElrRecord, {23: 0}),
    _RecordType(29, UnregisterControllerRecord, {33: 0}),
)

RECORD_TYPES = tuple(entry.type for entry in _RECORD_TYPES)
_BY_TYPE = MappingProxyType({entry.type: entry for entry in _RECORD_TYPES})
_BY_KEY = MappingProxyType({entry.key: entry for entry in _RECORD_TYPES})
_FRAME_VERSION = 1
_FRAMES = {
    (entry.type, version): uvarint(_FRAME_VERSION) + uvarint(entry.key) + uvarint(version)
    for entry in _RECORD_TYPES
    for version in entry.versions
}
_BY_FRAME = MappingProxyType({frame: kind for kind, frame in _FRAMES.items()})
_FRAME_BYTES = 3  # every known number takes one


@cache
def record_version(
    record_type: type[MetadataRecord], metadata_version: int = DEFAULT_METADATA_VERSION
) -> int:
    """The newest version of the record that may be written at `metadata_version`.

    A record above the finalized level stops every older node, so a level that does not know the
    record raises ValueError.
    """
    found = None
    for since, version in _BY_TYPE[record_type].written.items():
        if since <= metadata_version:
            found = version
    if found is None:
        name = record_type.__name__
        raise ValueError(f"{name} is not written at metadata.version {metadata_version}")
    return found


def _version_to_write(record: MetadataRecord, metadata_version: int) -> int:
    newest = record_version(type(record), metadata_version)
    if not isinstance(record, BrokerRegistrationChangeRecord):
        return newest
    # Kafka writes the oldest version with a field for all that the record says: 0 fencing,
    # 1 shutdown, 2 and 3 directories. If there is none, the newest raises CannotExpress.
    return next((each for each in range(newest) if carries(each, record)), newest)


def expressed(record: MetadataRecord, metadata_version: int) -> MetadataRecord | None:
    """Reduces a record to what `metadata_version` can say; None if it does not know the record."""
    try:
        version = record_version(type(record), metadata_version)
    except ValueError:
        return None
    found: MetadataRecord = reduced(version, record)
    return found


def encode_record(
    record: MetadataRecord,
    *,
    version: int | None = None,
    metadata_version: int = DEFAULT_METADATA_VERSION,
) -> bytes:
    """The framed value; `version` None is what is written at `metadata_version`.

    Raises ValueError for a version that does not exist, or a level that does not know the record;
    CannotExpress if the version lacks a field that the record uses.
    """
    if version is None:
        version = _version_to_write(record, metadata_version)
    return _encoder(type(record), version)(record)


@cache
def _encoder(record_type: type[MetadataRecord], version: int) -> Callable[[Any], bytes]:
    return struct_encoder(record_type, version, record_frame(record_type, version))


def record_frame(record_type: type[MetadataRecord], version: int) -> bytes:
    """Returns the bytes that a value of the record begins with."""
    frame = _FRAMES.get((record_type, version))
    if frame is None:
        raise ValueError(f"{record_type.__name__} has no version {version}")
    return frame


def decode_record(value: Buffer) -> MetadataRecord:
    """The record in a framed value.

    Raises UnknownRecord for what a later release may have written, Malformed for the rest.
    """
    buffer = bytes(value)
    decode = _decoder(buffer[:_FRAME_BYTES])
    if decode is not None:
        found: MetadataRecord = decode(buffer, _FRAME_BYTES)
        return found
    record_type, version, position = read_frame(buffer)
    return decode_struct(record_type, version, buffer, position)


@lru_cache(maxsize=256)
def _decoder(frame: bytes) -> Callable[[bytes, int], Any] | None:
    """None if no value that we know begins with these bytes."""
    kind = _BY_FRAME.get(frame)
    return None if kind is None else struct_decoder(*kind)


def read_frame(buffer: bytes, position: int = 0) -> tuple[type[MetadataRecord], int, int]:
    """Returns type and version of a framed value, and where its struct begins. Raises as above."""
    kind = _BY_FRAME.get(buffer[position : position + _FRAME_BYTES])
    if kind is not None:
        return *kind, position + _FRAME_BYTES
    frame_version, position = read_uvarint(buffer, position)
    if frame_version != _FRAME_VERSION:
        raise UnknownRecord(f"frame version {frame_version}: only {_FRAME_VERSION} is known")
    key, position = read_uvarint(buffer, position)
    version, position = read_uvarint(buffer, position)
    entry = _BY_KEY.get(key)
    if entry is None:
        raise UnknownRecord(f"a metadata record of unknown key {key}, version {version}")
    if version not in entry.versions:
        known = entry.versions[-1]
        unknown = UnknownRecord(f"{entry.type.__name__} version {version}: known are 0 to {known}")
        unknown.kind = entry.type
        raise unknown
    return entry.type, version, position
