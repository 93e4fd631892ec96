"""Control records of the metadata log: what the quorum itself writes between the records.

The key is int16 version, int16 type. The value is a flexible struct without a frame; its first
field is its own version, and readers go by that. Types that are not known are skipped: control
records are the quorum's remarks, not state of the image. Transaction markers (types 0 and 1)
belong to user partitions and are skipped too.

Source: KIP-595 (leader change), KIP-630 (snapshots), KIP-853 (voters); Kafka's ControlRecordType.
"""

import struct
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated

from wire.batch import Record, build_batch
from wire.message import Message
from wire.primitives import ZERO_UUID
from wire.record_schema import (
    Int16,
    Int32,
    Int64,
    Since,
    String,
    UInt16,
    UnknownRecord,
    Uuid,
    decode_struct,
    encode_struct,
)
from wire.varint import Malformed

__all__ = [
    "ControlRecord",
    "KRaftVersion",
    "KRaftVersionRange",
    "LeaderChange",
    "LeaderChangeVoter",
    "SnapshotFooter",
    "SnapshotHeader",
    "Voter",
    "VoterEndpoint",
    "Voters",
    "control_type",
    "decode_control",
    "encode_control_batch",
]


class LeaderChangeVoter(Message):
    voter_id: Int32
    voter_directory_id: Annotated[Uuid, Since(1)] = ZERO_UUID  # zero: not known


class LeaderChange(Message):
    """The first record of an epoch. Version 1, with directory ids, needs kraft.version 1."""

    version: Int16 = 0
    leader_id: Int32
    voters: tuple[LeaderChangeVoter, ...]
    granting_voters: tuple[LeaderChangeVoter, ...]


class SnapshotHeader(Message):
    """The first record of a snapshot."""

    version: Int16 = 0
    last_contained_log_timestamp: Int64  # ms


class SnapshotFooter(Message):
    """The last record of a snapshot: without it, the file is not whole."""

    version: Int16 = 0


class KRaftVersion(Message):
    """The finalized kraft.version, which is never a FeatureLevelRecord."""

    version: Int16 = 0
    kraft_version: Int16


class VoterEndpoint(Message):
    name: String  # of the listener
    host: String
    port: UInt16


class KRaftVersionRange(Message):
    min_supported_version: Int16
    max_supported_version: Int16


class Voter(Message):
    voter_id: Int32
    voter_directory_id: Uuid
    endpoints: tuple[VoterEndpoint, ...]
    kraft_version_feature: KRaftVersionRange


class Voters(Message):
    """The whole voter set; it is in force from the moment it is appended."""

    version: Int16 = 0
    voters: tuple[Voter, ...]


ControlRecord = LeaderChange | SnapshotHeader | SnapshotFooter | KRaftVersion | Voters

_TYPES: MappingProxyType[int, tuple[type[ControlRecord], int]] = MappingProxyType(
    {  # type: what it is, and its newest version
        2: (LeaderChange, 1),
        3: (SnapshotHeader, 0),
        4: (SnapshotFooter, 0),
        5: (KRaftVersion, 0),
        6: (Voters, 0),
    }
)
_TYPE_OF = MappingProxyType({entry[0]: number for number, entry in _TYPES.items()})
_KEY = struct.Struct(">hh")
_KEY_VERSION = 0
_VALUE_VERSION = struct.Struct(">h")


def encode_control_batch(records: Sequence[ControlRecord], *, timestamp_ms: int) -> bytes:
    """One control batch; offsets and epoch are assigned by the log."""
    encoded = [
        Record(_KEY.pack(_KEY_VERSION, _TYPE_OF[type(record)]), _encode_value(record))
        for record in records
    ]
    return build_batch(encoded, timestamp_ms=timestamp_ms, is_control=True)


def _encode_value(record: ControlRecord) -> bytes:
    _, newest = _TYPES[_TYPE_OF[type(record)]]
    assert 0 <= record.version <= newest, record
    return encode_struct(record, record.version)


def decode_control(record: Record) -> ControlRecord | None:
    """The value of a record of a control batch; None if its type is not known."""
    value = record.value or b""
    found = control_type(record.key or b"", value)
    if found is None:
        return None
    decoded = decode_struct(*found, value)
    if isinstance(decoded, Voters):
        _check(decoded)
    return decoded


def _check(record: Voters) -> None:
    """No node can act on a set without a voter, or with one twice: it is damage as any other."""
    ids = [voter.voter_id for voter in record.voters]
    if not ids or len(set(ids)) < len(ids):
        raise Malformed(f"a set of voters with the ids {ids}")


def control_type(key: bytes, value: bytes) -> tuple[type[ControlRecord], int] | None:
    """Type and version of a control record; None if its type is not known."""
    if len(key) < _KEY.size:
        raise Malformed(f"a control record with the key {key!r}")
    _, number = _KEY.unpack_from(key)  # its version adds fields at most
    if number not in _TYPES:
        return None
    record_type, newest = _TYPES[number]
    if len(value) < _VALUE_VERSION.size:
        raise Malformed(f"a {record_type.__name__} with the value {value!r}")
    (version,) = _VALUE_VERSION.unpack_from(value)
    if not 0 <= version <= newest:
        raise UnknownRecord(f"{record_type.__name__} version {version}: known are 0 to {newest}")
    return record_type, version
