"""The records of `__consumer_offsets`: Kafka's own bytes are read, and ours are the same.

See tests/golden/README.md and tests/golden/GroupRecords.java for how they came about.
"""

import json
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.groups.records import (
    Change,
    CommittedOffset,
    GroupChange,
    GroupMetadata,
    MemberMetadata,
    OffsetChange,
    decode_change,
    encode_change,
)
from wire.batch import Record, headers, records_of
from wire.varint import Malformed

GOLDEN = Path(__file__).parents[2] / "golden"
BYTES = {
    (row["what"], row["version"]): bytes.fromhex(row["bytes"])
    for row in json.loads((GOLDEN / "group_records.json").read_text())
}
OFFSET_KEY = BYTES[("offset key", 1)]
GROUP_KEY = BYTES[("group key", 2)]
EMPTY = GroupMetadata(protocol_type="consumer", generation=6, state_since_ms=1_700_000_000_002)

texts = st.text(max_size=8)
times = st.integers(0, 2**62)
offset_changes = st.builds(
    OffsetChange,
    group_id=texts,
    topic=texts,
    partition=st.integers(0, 2**31 - 1),
    committed=st.none()
    | st.builds(
        CommittedOffset,
        offset=st.integers(-1, 2**63 - 1),
        leader_epoch=st.integers(-1, 2**31 - 1),
        metadata=texts,
        commit_timestamp_ms=times,
        topic_id=st.integers(0, 2).map(lambda number: UUID(int=number)),
    ),
)
group_changes = st.builds(
    GroupChange,
    group_id=texts,
    metadata=st.none()
    | st.builds(
        GroupMetadata,
        protocol_type=texts,
        generation=st.integers(0, 2**31 - 1),
        protocol=st.none() | texts,
        leader=st.none() | texts,
        state_since_ms=times,
        members=st.lists(
            st.builds(
                MemberMetadata,
                id=texts,
                instance_id=st.none() | texts,
                client_id=texts,
                client_host=texts,
                rebalance_timeout_ms=st.integers(0, 2**31 - 1),
                session_timeout_ms=st.integers(0, 2**31 - 1),
                subscription=st.binary(max_size=8),
                assignment=st.binary(max_size=8),
            ),
            max_size=3,
        ).map(tuple),
    ),
)


def kafkas_offset(version: int) -> CommittedOffset:
    return CommittedOffset(
        offset=1_234_567_890_123,
        leader_epoch=9 if version >= 3 else -1,
        metadata="méta",
        commit_timestamp_ms=1_700_000_000_000,
        expire_timestamp_ms=1_700_000_099_000 if version == 1 else -1,
        topic_id=UUID(int=(1 << 64) + 2) if version >= 4 else UUID(int=0),
    )


def kafkas_group(version: int) -> GroupMetadata:
    members = tuple(
        MemberMetadata(
            id=id_,
            instance_id=instance_id if version >= 3 else None,
            client_id="client",
            client_host="/127.0.0.1",
            rebalance_timeout_ms=300_000 if version >= 1 else 45_000,
            session_timeout_ms=45_000,
            subscription=b"\1\2\3",
            assignment=assignment,
        )
        for id_, instance_id, assignment in (("m-1", "i", b"\4\5"), ("m-2", None, b""))
    )
    return GroupMetadata(
        protocol_type="consumer",
        generation=5,
        protocol="range",
        leader="m-1",
        state_since_ms=1_700_000_000_001 if version >= 2 else -1,
        members=members,
    )


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_kafkas_values_is_read(version: int) -> None:
    offset = decode_change(Record(key=OFFSET_KEY, value=BYTES[("offset", version)]))
    group = decode_change(Record(key=GROUP_KEY, value=BYTES[("group", version)]))
    empty = decode_change(Record(key=GROUP_KEY, value=BYTES[("empty group", version)]))

    assert offset == OffsetChange(
        group_id="gé", topic="t", partition=7, committed=kafkas_offset(version)
    )
    assert group == GroupChange(group_id="gé", metadata=kafkas_group(version))
    assert isinstance(empty, GroupChange)
    assert empty.metadata is not None
    assert (empty.metadata.protocol, empty.metadata.members) == (None, ())


@pytest.mark.parametrize(
    ("change", "key", "value"),
    [
        (kafkas_offset(4), OFFSET_KEY, ("offset", 4)),
        (kafkas_group(3), GROUP_KEY, ("group", 3)),
        (EMPTY, GROUP_KEY, ("empty group", 3)),
    ],
)
def test_what_we_write_is_what_kafka_writes(
    change: CommittedOffset | GroupMetadata, key: bytes, value: tuple[str, int]
) -> None:
    record = encode_change(
        OffsetChange(group_id="gé", topic="t", partition=7, committed=change)
        if isinstance(change, CommittedOffset)
        else GroupChange(group_id="gé", metadata=change)
    )
    assert record == Record(key=key, value=BYTES[value])


def test_an_offset_with_an_end_is_written_in_the_version_that_has_one() -> None:
    committed = CommittedOffset(offset=1, commit_timestamp_ms=2, expire_timestamp_ms=3)
    change = OffsetChange(group_id="g", topic="t", partition=0, committed=committed)
    record = encode_change(change)
    assert record.value is not None
    assert record.value[:2] == b"\0\1"
    assert decode_change(record) == change


def test_the_old_key_of_an_offset_is_read_like_the_new() -> None:
    old = BYTES[("old offset key", 0)]
    value = BYTES[("offset", 0)]
    assert decode_change(Record(key=old, value=value)) == decode_change(
        Record(key=OFFSET_KEY, value=value)
    )


def test_a_log_that_kafka_wrote_is_written_again_to_the_same_bytes() -> None:
    log = GOLDEN / "data" / "node-1" / "__consumer_offsets-0" / "00000000000000000000.log"
    content = log.read_bytes()
    for position, header in headers(content):
        for record in records_of(content[position : position + header.size_bytes]):
            change = decode_change(record)
            assert change is not None
            again = encode_change(change)
            assert (again.key, again.value) == (record.key, record.value)


@given(offset_changes | group_changes)
def test_every_change_comes_back(change: Change) -> None:
    assert decode_change(encode_change(change)) == change


def test_keys_of_other_kinds_are_passed_over() -> None:
    assert decode_change(Record(key=b"\0\4\0\1g", value=b"\0\0")) is None


@given(st.binary(max_size=30), st.binary(max_size=60))
def test_any_bytes_are_a_change_or_malformed(key: bytes, value: bytes) -> None:
    with suppress(Malformed):
        decode_change(Record(key=key, value=value))
        decode_change(Record(key=GROUP_KEY, value=value))


def test_a_value_that_is_cut_short_is_malformed() -> None:
    for key, name in ((OFFSET_KEY, "offset"), (GROUP_KEY, "group")):
        for version in (3, 4):
            content = BYTES[(name, version)]
            for end in range(len(content)):
                with pytest.raises(Malformed):
                    decode_change(Record(key=key, value=content[:end]))
