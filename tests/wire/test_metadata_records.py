"""The metadata records: golden bytes, every type in every version, strange bytes."""

from contextlib import suppress
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire import record_schema
from wire.foreign_records import ForeignRecord, kept_record
from wire.message import replace
from wire.metadata_records import (
    RECORD_TYPES,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    UnregisterControllerRecord,
    decode_record,
    encode_record,
    record_frame,
    record_version,
)
from wire.record_schema import UnknownRecord
from wire.varint import Malformed, uvarint

ID = UUID(int=0x0123_4567_89AB_CDEF)
VERSIONS = {
    RegisterBrokerRecord: 4,
    PartitionRecord: 2,
    PartitionChangeRecord: 2,
    BrokerRegistrationChangeRecord: 3,
}
TYPES_AND_VERSIONS = [
    (record_type, version)
    for record_type in RECORD_TYPES
    for version in range(VERSIONS.get(record_type, 0) + 1)
]

PRIMITIVES = {
    record_schema.Bool: st.booleans(),
    record_schema.Int8: st.integers(-(2**7), 2**7 - 1),
    record_schema.Int16: st.integers(-(2**15), 2**15 - 1),
    record_schema.UInt16: st.integers(0, 2**16 - 1),
    record_schema.Int32: st.integers(-(2**31), 2**31 - 1),
    record_schema.Int64: st.integers(-(2**63), 2**63 - 1),
    record_schema.Float64: st.floats(allow_nan=False),
    record_schema.Uuid: st.uuids(),
    record_schema.String: st.text(max_size=20),
    record_schema.Bytes: st.binary(max_size=20),
}
KINDS = {get_args(alias)[1]: strategy for alias, strategy in PRIMITIVES.items()}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field, from its annotation."""
    for mark in getattr(hint, "__metadata__", ()):
        if mark in KINDS:
            return KINDS[mark]
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(plain) is tuple:
        return st.lists(values(get_args(plain)[0]), max_size=3).map(tuple)
    if NoneType in get_args(plain):
        (inner,) = (arm for arm in get_args(plain) if arm is not NoneType)
        return st.none() | values(inner)
    return structs(plain)


def structs(struct_type: type[Any], version: int = 99) -> st.SearchStrategy[Any]:
    """Structs that `version` can carry: fields of later ones keep their defaults."""
    hints = get_type_hints(struct_type, include_extras=True)
    since = {
        name: next((m.version for m in getattr(h, "__metadata__", ()) if hasattr(m, "version")), 0)
        for name, h in hints.items()
    }
    return st.builds(
        struct_type,
        **{name: values(hint) for name, hint in hints.items() if since[name] <= version},
    )


@pytest.mark.parametrize(
    ("record", "encoded"),
    [
        (
            FeatureLevelRecord(name="metadata.version", feature_level=25),
            "010c00 116d657461646174612e76657273696f6e 0019 00",
        ),
        (NoOpRecord(), "011400 00"),
        (UnregisterControllerRecord(controller_id=2), "011d00 00000002 00"),  # by Kafka 4.4.0
        (BeginTransactionRecord(name="b"), "011700 01 00 02 0262"),
        (
            PartitionChangeRecord(partition_id=3, topic_id=ID, isr=(1, 2), leader=2),
            f"010502 00000003 {ID.hex} 02 0009 03 0000000100000002 0104 00000002",
        ),
        (
            PartitionChangeRecord(partition_id=0, topic_id=ID, isr=(), leader=-1),
            f"010502 00000000 {ID.hex} 02 0001 01 0104 ffffffff",
        ),
        (  # tags in ascending order: ELR 6, last known ELR 7, directories 8
            PartitionChangeRecord(
                partition_id=0,
                topic_id=ID,
                directories=(ID,),
                eligible_leader_replicas=(1,),
                last_known_elr=(),
            ),
            f"010502 00000000 {ID.hex} 03 0605 02 00000001 0701 01 0811 02 {ID.hex}",
        ),
        (  # directories are no tagged field here
            PartitionRecord(
                partition_id=1,
                topic_id=ID,
                replicas=(1, 2),
                isr=(1,),
                leader=1,
                leader_recovery_state=1,
                leader_epoch=5,
                partition_epoch=6,
                directories=(ID,),
            ),
            f"010302 00000001 {ID.hex} 03 00000001 00000002 02 00000001 01 01 00000001"
            f"00000005 00000006 02 {ID.hex} 01 00 01 01",
        ),
        (
            RegisterBrokerRecord(
                broker_id=1,
                incarnation_id=ID,
                broker_epoch=2,
                end_points=(BrokerEndpoint(name="P", host="h", port=65535, security_protocol=0),),
                features=(),
                rack=None,
                log_dirs=(ID,),
            ),
            f"010004 00000001 00 {ID.hex} 0000000000000002 02 0250 0268 ffff 0000 00 01 00 01 00"
            f"01 00 11 02 {ID.hex}",
        ),
    ],
    ids=lambda item: type(item).__name__ if not isinstance(item, str) else "",
)
def test_golden_bytes(record: MetadataRecord, encoded: str) -> None:
    assert encode_record(record).hex() == encoded.replace(" ", "")
    assert decode_record(bytes.fromhex(encoded)) == record


@pytest.mark.parametrize(("record_type", "version"), TYPES_AND_VERSIONS)
def test_every_record_round_trips_in_every_version(
    record_type: type[MetadataRecord], version: int
) -> None:
    @given(structs(record_type, version), st.data())
    def check(record: MetadataRecord, data: st.DataObject) -> None:
        encoded = encode_record(record, version=version)
        assert encoded.startswith(record_frame(record_type, version))
        assert decode_record(memoryview(encoded)) == record
        with pytest.raises(Malformed, match="behind"):
            decode_record(encoded + b"\0")
        with pytest.raises(Malformed):
            decode_record(encoded[: data.draw(st.integers(0, len(encoded) - 1))])

    check()


@given(st.sampled_from(TYPES_AND_VERSIONS), st.binary(max_size=80))
def test_random_bytes_raise_nothing_but_malformed(
    kind: tuple[type[MetadataRecord], int], body: bytes
) -> None:
    with suppress(Malformed):
        decode_record(record_frame(*kind) + body)


@given(structs(PartitionChangeRecord), st.integers(9, 2**20), st.binary(max_size=9))
def test_unknown_tagged_field_is_skipped(
    record: PartitionChangeRecord, tag: int, body: bytes
) -> None:
    encoded = encode_record(record)
    count_at = 3 + 4 + 16
    added = uvarint(tag) + uvarint(len(body)) + body
    extended = bytearray(encoded + added)
    extended[count_at] += 1
    assert decode_record(extended) == record
    reason = "a tagged field of PartitionChangeRecord that is not known"
    value = bytes(extended)
    kept = ForeignRecord(value=value, known=record, reason=reason, kind=PartitionChangeRecord)
    assert kept_record(value) == kept
    assert kept_record(encoded) == record


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("000c00", "frame version 0"),
        ("020c00", "frame version 2"),
        ("010600", "unknown key 6"),
        ("01e80700", "unknown key 1000"),
        ("010503", "PartitionChangeRecord version 3: known are 0 to 2"),
        ("010005", "RegisterBrokerRecord version 5: known are 0 to 4"),
    ],
)
def test_records_of_a_later_release_are_unknown(value: str, why: str) -> None:
    with pytest.raises(UnknownRecord, match=why):
        decode_record(bytes.fromhex(value))
    found = kept_record(bytes.fromhex(value))
    assert isinstance(found, ForeignRecord)
    assert (found.value.hex(), found.known) == (value, None)
    assert why in found.reason


@pytest.mark.parametrize(
    ("record_type", "expected"),
    [
        (RegisterBrokerRecord, {1: 0, 6: 0, 7: 1, 8: 2, 16: 2, 17: 3, 29: 3, 30: 4, 99: 4}),
        (PartitionRecord, {16: 0, 17: 1, 22: 1, 23: 2, 25: 2}),
        (PartitionChangeRecord, {16: 0, 17: 1, 22: 1, 23: 2, 25: 2}),
        (FenceBrokerRecord, {1: 0, 5: 0}),
        (NoOpRecord, {5: 0, 25: 0}),
        (BrokerRegistrationChangeRecord, {6: 0, 7: 1, 17: 2, 29: 2, 30: 3, 33: 3}),
        (UnregisterControllerRecord, {33: 0, 99: 0}),
    ],
)
def test_version_follows_metadata_version(
    record_type: type[MetadataRecord], expected: dict[int, int]
) -> None:
    assert {level: record_version(record_type, level) for level in expected} == expected


@pytest.mark.parametrize(
    ("record_type", "level"),
    [
        (FenceBrokerRecord, 6),
        (NoOpRecord, 4),
        (FeatureLevelRecord, 3),
        (BeginTransactionRecord, 12),
        (UnregisterControllerRecord, 32),
    ],
)
def test_record_that_the_metadata_version_lacks_is_refused(
    record_type: type[MetadataRecord], level: int
) -> None:
    with pytest.raises(ValueError, match=f"not written at metadata.version {level}"):
        record_version(record_type, level)


FENCE = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, fenced=1)


@pytest.mark.parametrize(
    ("record", "version"),
    [
        (FENCE, 0),
        (replace(FENCE, in_controlled_shutdown=1), 1),
        (replace(FENCE, log_dirs=(ID,)), 2),
        (replace(FENCE, cordoned_log_dirs=()), 3),
    ],
)
def test_broker_change_is_written_in_the_oldest_version_that_says_it(
    record: BrokerRegistrationChangeRecord, version: int
) -> None:
    assert encode_record(record, metadata_version=30)[2] == version


def test_version_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="NoOpRecord has no version 1"):
        encode_record(NoOpRecord(), version=1)


def test_lower_metadata_version_refuses_what_it_cannot_say() -> None:
    record = PartitionChangeRecord(partition_id=0, topic_id=ID, eligible_leader_replicas=(1,))
    with pytest.raises(ValueError, match="version 1 has no eligible_leader_replicas"):
        encode_record(record, metadata_version=22)
