"""Control records: golden bytes, round trips, types and versions that are not known."""

from uuid import UUID

import pytest

from wire.batch import Record, read_header, records_of, verify
from wire.control_records import (
    ControlRecord,
    KRaftVersion,
    KRaftVersionRange,
    LeaderChange,
    LeaderChangeVoter,
    SnapshotFooter,
    SnapshotHeader,
    Voter,
    VoterEndpoint,
    Voters,
    decode_control,
    encode_control_batch,
)
from wire.message import replace
from wire.record_schema import UnknownRecord
from wire.varint import Malformed

NOW_MS = 1_700_000_000_000
ID = UUID(int=0x0123_4567_89AB_CDEF)
VOTER_1 = LeaderChangeVoter(voter_id=1)
LEADER_CHANGE = LeaderChange(leader_id=1, voters=(VOTER_1,), granting_voters=(VOTER_1,))
RECORDS: list[tuple[ControlRecord, int, str]] = [
    (LEADER_CHANGE, 2, "0000 00000001 02 00000001 00 02 00000001 00 00"),
    (
        LeaderChange(
            version=1,
            leader_id=3,
            voters=(LeaderChangeVoter(voter_id=3, voter_directory_id=ID),),
            granting_voters=(),
        ),
        2,
        f"0001 00000003 02 00000003 {ID.hex} 00 01 00",
    ),
    (SnapshotHeader(last_contained_log_timestamp=NOW_MS), 3, "0000 0000018bcfe56800 00"),
    (SnapshotFooter(), 4, "0000 00"),
    (KRaftVersion(kraft_version=1), 5, "0000 0001 00"),
    (
        Voters(
            voters=(
                Voter(
                    voter_id=1,
                    voter_directory_id=ID,
                    endpoints=(VoterEndpoint(name="C", host="h", port=40000),),
                    kraft_version_feature=KRaftVersionRange(
                        min_supported_version=0, max_supported_version=1
                    ),
                ),
            )
        ),
        6,
        f"0000 02 00000001 {ID.hex} 02 0243 0268 9c40 00 0000 0001 00 00 00",
    ),
]


@pytest.mark.parametrize(("record", "number", "encoded"), RECORDS)
def test_golden_bytes(record: ControlRecord, number: int, encoded: str) -> None:
    (written,) = records_of(encode_control_batch([record], timestamp_ms=NOW_MS))
    assert written.key == bytes([0, 0, 0, number])
    assert written.value == bytes.fromhex(encoded)
    assert decode_control(written) == record


@pytest.mark.parametrize("ids", [(), (1, 1)])
def test_voters_that_cannot_be_are_malformed(ids: tuple[int, ...]) -> None:
    voters = tuple(
        Voter(
            voter_id=each,
            voter_directory_id=ID,
            endpoints=(),
            kraft_version_feature=KRaftVersionRange(
                min_supported_version=0, max_supported_version=1
            ),
        )
        for each in ids
    )
    batch = encode_control_batch([Voters(voters=voters)], timestamp_ms=NOW_MS)
    with pytest.raises(Malformed, match="a set of voters"):
        decode_control(next(records_of(batch)))


def test_batch_is_the_one_that_kafka_writes() -> None:
    batch = encode_control_batch([LEADER_CHANGE], timestamp_ms=NOW_MS)
    epoch_1 = "00000001"
    assert batch[:12].hex() + epoch_1 + batch[16:].hex() == (
        "00000000000000000000004f00000001021154eaf90020000000000000018bcfe568000000018bcfe56800"
        "ffffffffffffffffffffffffffff000000013a0000000800000002260000000000010200000001000200000001"
        "000000"
    )


def test_records_of_several_types_share_a_batch() -> None:
    records = [record for record, _, _ in RECORDS]
    batch = encode_control_batch(records, timestamp_ms=NOW_MS)
    (header,) = verify(batch)
    assert header.is_control
    assert (header.record_count, header.max_timestamp_ms) == (len(records), NOW_MS)
    assert [decode_control(record) for record in records_of(batch)] == records


@pytest.mark.parametrize("number", [0, 1, 7, 99, -1])
def test_unknown_types_are_skipped(number: int) -> None:
    key = (0).to_bytes(2, "big") + number.to_bytes(2, "big", signed=True)
    assert decode_control(Record(key=key, value=b"anything")) is None
    assert decode_control(Record(key=key, value=None)) is None


def test_later_key_version_is_read_alike() -> None:
    (written,) = records_of(encode_control_batch([LEADER_CHANGE], timestamp_ms=NOW_MS))
    assert decode_control(written._replace(key=bytes([0, 1, 0, 2, 9]))) == LEADER_CHANGE


@pytest.mark.parametrize("version", [2, -1])
def test_unknown_version_is_refused(version: int) -> None:
    value = version.to_bytes(2, "big", signed=True) + bytes(8)
    with pytest.raises(UnknownRecord, match=f"LeaderChange version {version}"):
        decode_control(Record(key=bytes([0, 0, 0, 2]), value=value))


def test_version_0_refuses_directory_ids() -> None:
    voter = replace(VOTER_1, voter_directory_id=ID)
    with pytest.raises(ValueError, match="no voter_directory_id"):
        encode_control_batch([replace(LEADER_CHANGE, voters=(voter,))], timestamp_ms=NOW_MS)


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_bad_key_is_malformed(key: bytes | None) -> None:
    with pytest.raises(Malformed):
        decode_control(Record(key=key, value=b"\0\0\0"))


@pytest.mark.parametrize(("record", "number", "encoded"), RECORDS)
def test_truncation_at_every_byte_is_malformed(
    record: ControlRecord, number: int, encoded: str
) -> None:
    value = bytes.fromhex(encoded)
    key = bytes([0, 0, 0, number])
    for end in range(len(value)):
        with pytest.raises(Malformed):
            decode_control(Record(key=key, value=value[:end]))
    with pytest.raises(Malformed, match="behind"):
        decode_control(Record(key=key, value=value + b"\0"))
    with pytest.raises(Malformed):
        decode_control(Record(key=key, value=None))
    assert read_header(encode_control_batch([record], timestamp_ms=0)).record_count == 1
