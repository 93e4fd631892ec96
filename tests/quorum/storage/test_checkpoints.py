"""Kafka's small files: round trips, golden ones, and every kind of damage named."""

import json
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.core.effects import EpochStart
from quorum.core.types import ElectionState, ReplicaKey
from quorum.log.files import checkpoints
from quorum.log.files.checkpoints import (
    CorruptFile,
    MetaProperties,
    format_election,
    format_epochs,
    format_meta_properties,
    format_offsets,
    format_partition_metadata,
    offset_line,
    parse_clean_shutdown,
    parse_election,
    parse_epochs,
    parse_meta_properties,
    parse_offsets,
    parse_partition_metadata,
)
from quorum.node.bootstrap import format_bootstrap, parse_bootstrap
from wire.batch import BatchHeader, headers
from wire.primitives import ZERO_UUID

GOLDEN = Path(__file__).parents[2] / "golden"
UUIDS = st.uuids(allow_nil=False)


def golden(name: str) -> list[Path]:
    found = sorted(GOLDEN.rglob(name))
    assert found, f"no golden {name}"
    return found


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)), max_size=9))
def test_epochs_are_read_back(pairs: list[tuple[int, int]]) -> None:
    epochs = sorted({epoch for epoch, _ in pairs})
    starts = sorted({start for _, start in pairs})
    entries = tuple(map(EpochStart, epochs, starts))
    assert parse_epochs(format_epochs(entries), "f") == entries
    assert parse_epochs(format_epochs(entries)[:-1], "f") == entries, "the last line may be open"


@given(
    st.dictionaries(
        st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 99)),
        st.integers(0, 2**63 - 1),
    )
)
def test_offsets_are_read_back(points: dict[tuple[str, int], int]) -> None:
    content = format_offsets(offset_line(*key, offset) for key, offset in points.items())
    assert parse_offsets(content, "f") == points


@given(
    epoch=st.integers(0, 2**31 - 1),
    leader=st.none() | st.integers(0, 9),
    voted=st.none() | st.builds(ReplicaKey, st.integers(0, 9), UUIDS),
)
def test_election_is_read_back(epoch: int, leader: int | None, voted: ReplicaKey | None) -> None:
    election = ElectionState(epoch=epoch, leader_id=leader, voted=voted)
    assert parse_election(format_election(election), "f") == election
    without_directory = None if voted is None else ReplicaKey(voted.id)
    expected = ElectionState(epoch=epoch, leader_id=leader, voted=without_directory)
    assert parse_election(format_election(election, version=0, voters=(1, 2)), "f") == expected


def test_election_of_version_0_is_as_kafka_writes_it() -> None:
    election = ElectionState(epoch=5, leader_id=1)
    assert format_election(election, version=0, voters=(1,)) == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":5,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )


@given(
    cluster_id=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1),
    node_id=st.integers(0, 2**31 - 1),
    directory_id=st.none() | UUIDS,
)
def test_meta_properties_are_read_back(
    cluster_id: str, node_id: int, directory_id: UUID | None
) -> None:
    meta = MetaProperties(cluster_id=cluster_id, node_id=node_id, directory_id=directory_id)
    assert parse_meta_properties(format_meta_properties(meta), "f") == meta


def test_meta_properties_of_zookeeper_mode_are_read() -> None:
    content = b"#\n#Tue Oct 22\nversion=0\nbroker.id=3\ncluster.id=abc\\=\\=\n"
    meta = parse_meta_properties(content, "f")
    assert (meta.version, meta.node_id, meta.cluster_id) == (0, 3, "abc==")


@given(UUIDS)
def test_partition_metadata_is_read_back(topic_id: UUID) -> None:
    assert parse_partition_metadata(format_partition_metadata(topic_id), "f") == topic_id


@pytest.mark.parametrize(
    ("content", "epoch"),
    [
        (b'{"version":0,"brokerEpoch":7}', 7),
        (b"", -1),
        (b"1", -1),
        (b"{}", -1),
        (b'{"brokerEpoch":"x"}', -1),
    ],
)
def test_clean_shutdown_of_any_release_is_read(content: bytes, epoch: int) -> None:
    assert parse_clean_shutdown(content) == epoch


# --- what Kafka wrote -----------------------------------------------------------------------


def test_golden_election_is_read_and_written_the_same() -> None:
    for path in golden("quorum-state"):
        content = path.read_bytes()
        election = parse_election(content, str(path))
        assert election.epoch >= 1
        told = json.loads(content)
        voters = [voter["voterId"] for voter in told.get("currentVoters", ())]
        version = told["data_version"]
        assert format_election(election, version=version, voters=voters) == content


def test_golden_epochs_are_read_and_written_the_same() -> None:
    for path in golden("leader-epoch-checkpoint"):
        content = path.read_bytes()
        assert format_epochs(parse_epochs(content, str(path))) == content


@pytest.mark.parametrize(
    "name",
    [
        checkpoints.HIGH_WATERMARKS,
        checkpoints.RECOVERY_POINTS,
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
    ],
)
def test_golden_offsets_are_read_and_written_the_same(name: str) -> None:
    for path in golden(name):
        content = path.read_bytes()
        points = parse_offsets(content, str(path))
        written = format_offsets(offset_line(*key, offset) for key, offset in points.items())
        assert written == content or content == b""  # not written yet


def test_golden_meta_properties_are_read_and_written_the_same_but_for_comments() -> None:
    for path in golden("meta.properties"):
        content = path.read_bytes()
        meta = parse_meta_properties(content, str(path))
        lines = [line for line in content.splitlines() if not line.startswith(b"#")]
        assert sorted(format_meta_properties(meta).splitlines()) == sorted(lines)


def test_golden_partition_metadata_is_read_and_written_the_same() -> None:
    for path in golden("partition.metadata"):
        content = path.read_bytes()
        topic_id = parse_partition_metadata(content, str(path))
        assert topic_id is not None
        assert format_partition_metadata(topic_id) == content


def test_golden_bootstrap_is_read_and_written_the_same() -> None:
    for path in golden("bootstrap.checkpoint"):
        content = path.read_bytes()
        values = parse_bootstrap(content, str(path))
        assert values
        theirs = [_without_time(header) for _, header in headers(content)]
        ours = [_without_time(header) for _, header in headers(format_bootstrap(values))]
        assert ours == theirs


def _without_time(header: BatchHeader) -> BatchHeader:
    return header._replace(base_timestamp_ms=0, max_timestamp_ms=0, crc=0)


# --- damage ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"1\n0\n", "line 1"),
        (b"x", "line 1"),
        (b"0\n", "line 2"),
        (b"0\nx\n", "line 2"),
        (b"0\n2\n1 0\n", "line 2: 2 entries announced, 1 found"),
        (b"0\n1\n1 0\n2 5\n", "line 2"),
        (b"0\n1\n1\n", "line 3"),
        (b"0\n1\n1 0 0\n", "line 3"),
        (b"0\n1\n1 -2\n", "line 3"),
        (b"0\n1\n99999999999 0\n", "line 3"),
        (b"0\n2\n1 5\n1 6\n", "line 4"),
        (b"0\n2\n1 5\n2 5\n", "line 4"),
        (b"0\n1\n\xff 0\n", "line 3"),
    ],
)
def test_damaged_epochs_name_file_and_line(content: bytes, where: str) -> None:
    with pytest.raises(CorruptFile, match=f"/d/epochs, {where}"):
        parse_epochs(content, "/d/epochs")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "no JSON"),
        (b"[]", "object"),
        (b"{}", "data_version"),
        (b'{"data_version":2}', "not known"),
        (b'{"data_version":0,"leaderId":1,"votedId":-1}', "leaderEpoch"),
        (b'{"data_version":0,"leaderId":"1","votedId":-1,"leaderEpoch":1}', "leaderId"),
        (b'{"data_version":0,"leaderId":true,"votedId":-1,"leaderEpoch":1}', "leaderId"),
        (b'{"data_version":0,"leaderId":-2,"votedId":-1,"leaderEpoch":1}', "below"),
        (b'{"data_version":1,"leaderId":1,"votedId":-1,"leaderEpoch":1}', "votedDirectoryId"),
        (b'{"data_version":0,', "no JSON"),
        (b"\xff\xff", "no JSON"),
    ],
)
def test_damaged_election_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(CorruptFile, match=f"/d/quorum-state.*{problem}"):
        parse_election(content, "/d/quorum-state")


def test_election_cut_short_at_any_byte_is_refused() -> None:
    content = format_election(ElectionState(epoch=3, voted=ReplicaKey(1, UUID(int=9))))
    for size in range(len(content)):
        with pytest.raises(CorruptFile):
            parse_election(content[:size], "f")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"version=2\n", "line 1: version 2"),
        (b"version=1\nnode.id=1\n", "cluster.id is missing"),
        (b"version=1\ncluster.id=a\n", "node.id is missing"),
        (b"version=1\ncluster.id=a\nnode.id=x\n", "line 3: node.id"),
        (b"version=1\ncluster.id=a\nnode.id=1\ndirectory.id=zz\n", "line 4: directory.id"),
        (b"version=1\nnonsense\n", "line 2"),
        (b"version=1\n\xff=1\n", "line 2"),
        (b"", "cluster.id is missing"),
    ],
)
def test_damaged_meta_properties_are_refused(content: bytes, problem: str) -> None:
    with pytest.raises(CorruptFile, match=f"/d/meta.properties.*{problem}"):
        parse_meta_properties(content, "/d/meta.properties")


@pytest.mark.parametrize(
    "content",
    [b"version: 1\n", b"version: 0\n", b"version: 0\nx: y", b"version: 0\ntopic_id:"],
)
def test_damaged_partition_metadata_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptFile, match=r"/d/partition\.metadata, line"):
        parse_partition_metadata(content, "/d/partition.metadata")


@pytest.mark.parametrize("content", [None, b"", bytes(50)])
def test_no_topic_id_is_read_from_what_was_never_synced(content: bytes | None) -> None:
    assert parse_partition_metadata(content, "/d/partition.metadata") is None


def test_bootstrap_cut_short_or_flipped_is_refused() -> None:
    content = format_bootstrap([b"\1\2\3"])
    assert parse_bootstrap(content, "f") == (b"\1\2\3",)
    for size in range(len(content)):
        with pytest.raises(CorruptFile):
            parse_bootstrap(content[:size], "f")
    for at in range(21, len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 0x55
        try:
            assert parse_bootstrap(bytes(damaged), "f") == (b"\1\2\3",)
        except CorruptFile:
            continue


def test_zero_uuid_is_no_vote() -> None:
    content = format_election(ElectionState(epoch=1))
    assert b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA"' in content
    assert ZERO_UUID.int == 0
