"""The content of a snapshot: what is written can be read, and nothing else can."""

import struct
from collections.abc import Iterator

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from quorum.core.types import OffsetAndEpoch
from quorum.log.snapshots import SnapshotLoad, last_timestamp_ms, snapshot_content, snapshot_head
from quorum.raft.voter_history import Membership
from quorum.raft.voters import VoterSet
from tests.quorum.builders import snapshot
from tests.quorum.ledger import values_of
from tests.quorum.replicas import dynamic_voter
from wire.batch import data_batch, headers, records_of, verify
from wire.control_records import (
    KRaftVersion,
    SnapshotFooter,
    SnapshotHeader,
    Voters,
    decode_control,
    encode_control_batch,
)
from wire.varint import Malformed

ID = OffsetAndEpoch(100, 7)


def controls(content: bytes) -> list[object]:
    return [
        decode_control(record)
        for position, header in headers(content)
        if header.is_control
        for record in records_of(content[position : position + header.size_bytes])
    ]


def test_offsets_count_from_zero_and_the_epoch_is_that_of_the_id() -> None:
    content, _ = snapshot(100, 7, records=8)
    found = verify(content)
    assert [header.base_offset for header in found] == [0, 1, 4, 7, 9]
    assert {header.leader_epoch for header in found} == {7}
    assert [header.is_control for header in found] == [True, False, False, False, True]


def test_static_voters_are_not_in_a_snapshot() -> None:
    content, file = snapshot(100, 7, timestamp_ms=1234)
    assert controls(content) == [
        SnapshotHeader(last_contained_log_timestamp=1234),
        SnapshotFooter(),
    ]
    assert last_timestamp_ms(file) == 1234


def test_voters_of_the_log_are_in_the_batch_of_the_header() -> None:
    membership = Membership(
        voters=VoterSet.of([dynamic_voter(1), dynamic_voter(2)]), kraft_version=1
    )
    content = b"".join(
        snapshot_content(
            snapshot_head(5, membership.head_records()), [], epoch=7, last_timestamp_ms=5
        )
    )
    assert [type(record) for record in controls(content)] == [
        SnapshotHeader,
        KRaftVersion,
        Voters,
        SnapshotFooter,
    ]
    assert [header.record_count for header in verify(content)] == [3, 1]


def test_content_is_drawn_only_as_far_as_it_is_asked_for() -> None:
    drawn: list[int] = []

    def batches() -> Iterator[bytes]:
        for number in range(1000):
            drawn.append(number)
            yield data_batch([b"x"], timestamp_ms=0)

    content = snapshot_content(snapshot_head(0, ()), batches(), epoch=1, last_timestamp_ms=0)
    next(content)
    assert drawn == []
    next(content)
    assert drawn == [0]


@given(st.integers(0, 20), st.data())
def test_load_gives_the_same_records_however_the_pieces_are_cut(
    count: int, data: st.DataObject
) -> None:
    content, _ = snapshot(100, 7, records=count, timestamp_ms=77)
    load = SnapshotLoad(ID)
    given_: list[bytes] = []
    while not load.is_complete:
        length = data.draw(st.integers(1, len(content)))
        given_.append(load.take(content[load.position : load.position + length], len(content)))
    assert b"".join(given_) == content
    assert len(values_of(b"".join(given_))) == count
    assert load.last_timestamp_ms == 77


def header_alone() -> bytes:
    return encode_control_batch([SnapshotHeader(last_contained_log_timestamp=0)], timestamp_ms=0)


def compressed_head() -> bytes:
    """By zstd, which we lack."""
    head = bytearray(header_alone())
    head[21:23] = struct.pack(">h", 0x20 | 4)
    head[17:21] = struct.pack(">I", crc32c(head[21:]))
    return bytes(head)


def load_all(content: bytes) -> None:
    load = SnapshotLoad(ID)
    while not load.is_complete:
        load.take(content[load.position : load.position + 50], len(content))


CONTENT, _ = snapshot(100, 7)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        CONTENT[:-1],
        CONTENT[:-100],
        CONTENT + b"x",
        CONTENT + CONTENT,
        CONTENT[:-20] + b"?" + CONTENT[-19:],  # a wrong checksum
        header_alone(),
        compressed_head(),
        header_alone() + header_alone(),  # offset 0 twice
        data_batch([b"x"], timestamp_ms=0),
        encode_control_batch([SnapshotFooter()], timestamp_ms=0),
        b"\0" * 1000,
        b"garbage" * 100,
    ],
)
def test_what_is_no_whole_snapshot_is_damage(content: bytes) -> None:
    with pytest.raises(Malformed):
        load_all(content)


def test_file_that_lost_its_end_since_is_damage() -> None:
    load = SnapshotLoad(ID)
    load.take(CONTENT[:50], len(CONTENT))
    with pytest.raises(Malformed, match="nothing at byte 50"):
        load.take(b"", len(CONTENT))
