"""A topic's partition: what Kafka wrote is told as Kafka tells it, and what is wrong is found."""

import json
import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from quorumlab.cli import main
from wire.batch import Record, assign, build_batch
from wire.transaction_markers import Marker, build_marker

GOLDEN = Path(__file__).parents[2] / "golden/data"
SEGMENT, ABORTED = "00000000000000000000.log", "00000000000000000000.txnindex"
AT_MS = 1_700_000_000_000


def inspected(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[Any], str]:
    code = main(["inspect", "partition", "--format", "jsonl", str(path)])
    told = capsys.readouterr()
    return code, [json.loads(line) for line in told.out.splitlines()], told.err


def dumped(name: str) -> Iterator[dict[str, str]]:
    """What kafka-dump-log says, by its names of fields."""
    for path in sorted((GOLDEN / "dump/node-1" / name).glob("*.txt")):
        for line in path.read_text().splitlines():
            fields = dict(re.findall(r"(\w+): (\S+)", line))
            yield {"file": path.name.removesuffix(".txt"), **fields}


# --- what Kafka wrote ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t-0", "rolled-0", "stamped-0"])
def test_batches_are_told_as_by_kafka(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, told, _ = inspected(GOLDEN / "node-1" / name, capsys)
    batches = [each for each in told if "offset" in each]
    theirs = [each for each in dumped(name) if "baseOffset" in each]
    assert code == 0
    assert [each["offset"] for each in batches] == [int(each["baseOffset"]) for each in theirs]
    for mine, kafkas in zip(batches, theirs, strict=True):
        data = mine["data"]
        assert data.get("producerId", -1) == int(kafkas["producerId"])
        assert (mine["type"] != "BATCH") == (kafkas["isControl"] == "true")
        if mine["type"] == "BATCH":
            assert data.get("isTransactional", False) == (kafkas["isTransactional"] == "true")
            shown = {"compression": "none", **data}
            for ours, name_there in (("compression", "compresscodec"), ("size", "size")):
                assert str(shown[ours]) == kafkas[name_there]
            of_producer = ("producerEpoch", "baseSequence") if "producerId" in data else ()
            for field in ("lastOffset", "count", *of_producer):
                assert shown[field] == int(kafkas[field])


def test_records_of_groups_are_told_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, told, _ = inspected(GOLDEN / "node-1/__consumer_offsets-0", capsys)
    records = [each for each in told if "offset" in each and not each["type"].endswith("_MARKER")]
    theirs = [each for each in dumped("__consumer_offsets-0") if "baseOffset" in each]
    ordinary = [each for each in theirs if each["isControl"] == "false"]
    assert code == 0
    assert len(records) == sum(int(each["count"]) for each in ordinary)
    assert {each["type"] for each in records} == {"OFFSET_COMMIT", "GROUP_METADATA"}
    by_producer = sum(int(each["count"]) for each in ordinary if each["isTransactional"] == "true")
    assert sum("producerId" in each["data"] for each in records) == by_producer


def test_markers_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    _, told, _ = inspected(GOLDEN / "node-1/t-0", capsys)
    markers = {each["type"]: each for each in told if each["type"].endswith("_MARKER")}
    of_producer = {"producerId": 2, "producerEpoch": 0, "coordinatorEpoch": 0}
    assert markers["COMMIT_MARKER"]["data"] == {**of_producer, "firstOffset": 24}
    assert markers["ABORT_MARKER"]["data"] == {**of_producer, "firstOffset": 27}


def test_what_lies_beside_the_log_is_told_as_by_kafka(capsys: pytest.CaptureFixture[str]) -> None:
    _, told, _ = inspected(GOLDEN / "node-1/t-0", capsys)
    theirs = list(dumped("t-0"))
    for type_, ending in (("ABORTED_TRANSACTION", ".txnindex"), ("PRODUCER", ".snapshot")):
        mine = [each["data"] for each in told if each["type"] == type_]
        kafkas = [each for each in theirs if each["file"].endswith(ending) and len(each) > 1]
        assert mine
        for ours, other in zip(mine, kafkas, strict=True):
            assert {name: str(value) for name, value in ours.items()}.items() <= other.items()


STATES = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]


def test_states_of_transactions_are_told_as_by_kafka(capsys: pytest.CaptureFixture[str]) -> None:
    name = "__transaction_state-0"
    _, told, _ = inspected(GOLDEN / "node-1" / name, capsys)
    dump = (GOLDEN / "dump/node-1" / name / f"{SEGMENT}.txt").read_text()
    theirs = [json.loads(each)["data"] for each in re.findall(r"payload: (\{.*\})", dump)]
    assert {each["type"] for each in told} == {"TRANSACTION"}
    for mine, kafkas in zip((each["data"] for each in told), theirs, strict=True):
        assert mine.pop("transactionalId") == "golden-tx"
        places = kafkas["transactionPartitions"] or ()
        kafkas["transactionPartitions"] = [
            f"{each['topic']}-{index}" for each in places for index in each["partitionIds"]
        ]
        kafkas["transactionStatus"] = STATES[kafkas["transactionStatus"]]
        assert mine == kafkas


def test_states_that_are_not_known_are_shown_with_their_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = b"\0\0\0\x02id"
    records = (
        Record(key=b"\0\x09\0\x02id", value=b"\xca\xfe"),
        Record(key=known, value=b"\0\x07\xca\xfe"),
        Record(key=known, value=None),
    )
    path = tmp_path / "__transaction_state-3"
    path.mkdir()
    (path / SEGMENT).write_bytes(build_batch(records, timestamp_ms=AT_MS))
    code, (later, newer, forgotten), _ = inspected(path, capsys)
    assert (code, later["type"], newer["type"]) == (0, "UNKNOWN", "UNKNOWN")
    assert later["data"]["key"] == "000900026964"
    assert [each["data"]["value"] for each in (later, newer)] == ["cafe", "0007cafe"]
    assert (forgotten["type"], forgotten["data"]) == ("TRANSACTION", {"transactionalId": "id"})


def test_a_file_alone_is_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, told, _ = inspected(GOLDEN / "node-1/t-0" / ABORTED, capsys)
    assert (code, [each["type"] for each in told]) == (0, ["ABORTED_TRANSACTION"])


# --- what is wrong ------------------------------------------------------------------------------

MARKER_AT = 2


def batch(offset: int, producer_id: int, *, transactional: bool = True) -> bytes:
    content = build_batch(
        [Record(value=b"v"), Record(value=b"w")],
        timestamp_ms=AT_MS,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=transactional,
    )
    return assign(content, base_offset=offset, leader_epoch=1)


def marker(offset: int, producer_id: int, *, commit: bool = False) -> bytes:
    content = build_marker(Marker(producer_id, 1, commit, 3), timestamp_ms=AT_MS)
    return assign(content, base_offset=offset, leader_epoch=1)


def entry(producer_id: int, first: int, last: int, stable: int, version: int = 0) -> bytes:
    return struct.pack(">hqqqq", version, producer_id, first, last, stable)


def partition(directory: Path, batches: Sequence[bytes], index: bytes | None = None) -> Path:
    path = directory / "orders-0"
    path.mkdir()
    (path / SEGMENT).write_bytes(b"".join(batches))
    if index is not None:
        (path / ABORTED).write_bytes(index)
    return path


ONE_ABORTED = (batch(0, 4), marker(MARKER_AT, 4))


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        (entry(4, 0, MARKER_AT, 3), None),
        (None, "offset 2 is in no .txnindex"),
        (entry(5, 0, MARKER_AT, 3), "offset 2 is in no .txnindex"),
        (entry(4, 1, MARKER_AT, 3), "aborts from 0 on, and the .txnindex says 1"),
        (entry(4, 0, 2, 3) + entry(4, 0, 9, 3), "no such marker is in the log"),
        (entry(4, 0, MARKER_AT, 3) + b"\0", "ends within an entry"),
        (entry(4, 0, MARKER_AT, 3) + entry(4, 3, 5, 6, version=1), "an entry of version 1"),
    ],
)
def test_the_index_has_what_the_markers_abort(
    index: bytes | None,
    problem: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, told = inspected(partition(tmp_path, ONE_ABORTED, index), capsys)
    assert code == (0 if problem is None else 1)
    assert (problem or "") in told


def test_commits_need_no_entry_and_an_open_transaction_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batches = (
        batch(0, 4),
        batch(2, 5),
        marker(4, 4, commit=True),
        batch(5, 6, transactional=False),
        marker(7, 9),  # of a producer that wrote nothing here
    )
    code, told, _ = inspected(partition(tmp_path, batches), capsys)
    assert code == 0
    (is_open,) = (each["data"] for each in told if each["type"] == "OPEN_TRANSACTION")
    assert is_open == {"producerId": 5, "firstOffset": 2}


def test_unknown_control_records_are_shown_with_their_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Record(key=struct.pack(">hh", 0, 77), value=b"\xca\xfe")
    content = build_batch([record], timestamp_ms=AT_MS, is_control=True)
    _, told, _ = inspected(partition(tmp_path, [content]), capsys)
    assert [(each["type"], each["data"]) for each in told] == [
        ("UNKNOWN", {"key": "0000004d", "value": "cafe"})
    ]


def test_damage_loses_only_the_batch_that_it_hits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hit = bytearray(batch(2, 4))
    hit[-1] ^= 1
    batches = (batch(0, 4), bytes(hit), batch(4, 4), marker(6, 4, commit=True))
    code, told, complaint = inspected(partition(tmp_path, batches), capsys)
    assert (code, [each["offset"] for each in told]) == (1, [0, 4, 6])
    assert "the checksum of the batch of offset 2 is wrong" in complaint


def test_only_batches_that_are_asked_for_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = partition(tmp_path, ONE_ABORTED, entry(4, 0, MARKER_AT, 3))
    assert main(["inspect", "partition", "--offsets", "2..", str(path)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "ABORT_MARKER" in first
    assert "coordinatorEpoch=3 firstOffset=0" in first
    assert second.startswith("ABORTED_TRANSACTION ")


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda content: content[:5], "are no snapshot"),
        (lambda content: b"\0\x02" + content[2:], "of version 2"),
        (lambda content: content[:-1] + b"\xee", "checksum is wrong"),
    ],
)
def test_torn_snapshot_of_producers_is_told(
    spoil: Any, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = (GOLDEN / "node-1/t-0/00000000000000000030.snapshot").read_bytes()
    path = tmp_path / "00000000000000000030.snapshot"
    path.write_bytes(spoil(whole))
    code, told, complaint = inspected(path, capsys)
    assert (code, told) == (1, [])
    assert problem in complaint
