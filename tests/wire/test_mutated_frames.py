"""Damaged messages of every API and version: kio's value or one `Malformed`, at a bounded cost.

Each frame comes from a seed, and a failure prints seed, version and bytes. The suite takes a few
frames of each version, and counts calls instead of seconds; `tests.wire.many_frames` (`make
frames`) takes 10,000 of each, and a clock. Crafted frames, full of what takes the most memory for
its bytes, are held to what they take at most; the suite fills arrays in two of four ways.
"""

import sys
import tracemalloc
from random import Random
from typing import Any, cast

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader

from tests.wire.crafted_frames import FILLINGS, MESSAGE_BYTES, crafted_frames, factor_allowed
from tests.wire.reference_reader import (
    ReferenceReader,
    Refused,
    differences,
    plain_of_kio,
    random_bytes,
)
from wire.api_table import APIS, Api
from wire.canonical import reader_for, writer_for
from wire.differences import rules_for
from wire.layout import EntityLayout
from wire.reading import READING
from wire.schema import load_layout
from wire.varint import Malformed
from wire.writing import Sink

SEED = 20261123
FEW = 12
CRAFTED_BYTES = 1000
FEW_FILLINGS = [filling for filling in FILLINGS if not filling.is_nested]
GIANT_LENGTHS = (
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x80\x40",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x00\x0f\x42\x40",
)
TAGS = (b"\x01\x63\x03abc", b"\x02\x00\x01\x00\x01\x01\x00", b"\x01\xe8\x07\x00")


def mutated(random: Random, frame: bytes) -> bytes:
    """One to three kinds of damage."""
    for _ in range(random.choice([1, 1, 2, 3])):
        at = random.randrange(len(frame) + 1)
        match random.randrange(6):
            case 0 if at < len(frame):
                flipped = bytes([frame[at] ^ 1 << random.randrange(8)])
                frame = frame[:at] + flipped + frame[at + 1 :]
            case 1:
                frame = frame[:at]
            case 2:
                length = random.choice(GIANT_LENGTHS)
                frame = frame[:at] + length + frame[at + random.choice([0, len(length)]) :]
            case 3:
                frame = frame[:at] + random.choice(TAGS) + frame[at + random.choice([0, 1]) :]
            case 4:
                frame = frame[:at] + frame[at + random.randrange(1, 5) :]
            case _:
                frame = frame[:at] + random.randbytes(random.randrange(1, 5)) + frame[at:]
    return frame


def kio_reader(api: Api, version: int, kind: str) -> Any:
    load = load_request_schema if kind == "request" else load_response_schema
    return entity_reader(load(api.key, version))


class Judge:
    """Reads frames of one version in three ways, and counts what came of them."""

    def __init__(self, api: Api, version: int, kind: str) -> None:
        self.name = f"{api.title} {version} {kind}"
        self.layout = load_layout(api.name, version, kind)
        self.read = reader_for(api.name, version, kind)
        self._write = writer_for(api.name, version, kind)
        self._kio = kio_reader(api, version, kind)
        self._adjusted = rules_for(api.name, version, kind).differences
        self.accepted = 0

    def judge(self, frame: bytes) -> None:
        reference = ReferenceReader(frame)
        try:
            plain = reference.entity(self.layout)
        except Refused:
            with pytest.raises(Malformed):
                self.read(frame, 0)
            return
        self.accepted += 1
        value, end = self.read(frame, 0)
        assert end == reference.position
        if not self._adjusted:
            assert list(differences(value, plain)) == []
            out = Sink()
            self._write(out, value)
            assert list(differences(self.read(b"".join(out.buffers()), 0)[0], plain)) == []
        self._compare_with_kio(frame, plain, reference.strange)

    def _compare_with_kio(self, frame: bytes, plain: dict[str, Any], strange: bool) -> None:
        """Only frames whose lengths fit come here: others abort the process."""
        try:
            theirs, _ = self._kio(frame, 0)
        except Exception:  # noqa: BLE001  # whatever its refusal is
            assert strange or has_times(self.layout), "kio refuses what we read"
            return
        if not strange:
            assert list(differences(plain_of_kio(theirs, self.layout), plain)) == []


def has_times(layout: EntityLayout) -> bool:
    """Kio has no times after the year 9999."""
    return any(
        field.kind.startswith(("datetime", "timedelta"))
        or (field.entity is not None and has_times(field.entity))
        for field in layout.fields + layout.tagged
    )


def frames(judge: Judge, count: int) -> list[bytes]:
    random = Random(f"{SEED} {judge.name}")
    found: list[bytes] = []
    while len(found) < count:
        whole = random_bytes(random, judge.layout)
        found.append(whole)
        found += (mutated(random, whole) for _ in range(5))
    return found[:count]


EVERY_VERSION = [
    (api, version, kind)
    for api in APIS
    for version in api.versions
    for kind in ("request", "response")
]
NAMES = [f"{api.title}-{version}-{kind}" for api, version, kind in EVERY_VERSION]


def run(judge: Judge, count: int) -> None:
    for number, frame in enumerate(frames(judge, count)):
        try:
            judge.judge(frame)
        except BaseException:
            print(f"seed {SEED}, {judge.name}, frame {number}: {frame.hex()}")
            raise
    assert judge.accepted * 6 >= count, "hardly any frame was whole"


@pytest.mark.parametrize(("api", "version", "kind"), EVERY_VERSION, ids=NAMES)
def test_a_damaged_frame_is_kios_value_or_malformed(api: Api, version: int, kind: str) -> None:
    run(Judge(api, version, kind), FEW)


def outcome(judge: Judge, frame: bytes) -> Any:
    try:
        return judge.read(frame, 0)
    except Malformed:
        return None


def calls_of(judge: Judge, frame: bytes) -> int:
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        outcome(judge, frame)
    finally:
        sys.setprofile(None)
    return calls


def peak_bytes(judge: Judge, frame: bytes, *, has_ids: bool = True) -> int:
    """The least of two readings: threads of the test runner may take memory during one.

    `has_ids`: ids are there from another frame.
    """
    return min(_peak_of_one(judge, frame, has_ids=has_ids) for _ in range(2))


def takes_at_most(bound: int, judge: Judge, frame: bytes, *, has_ids: bool = True) -> bool:
    """One reading is enough that shows it."""
    return any(_peak_of_one(judge, frame, has_ids=has_ids) <= bound for _ in range(3))


def _peak_of_one(judge: Judge, frame: bytes, *, has_ids: bool) -> int:
    if not has_ids:
        cast(Any, READING["uuid"]).cache_clear()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    outcome(judge, frame)
    return tracemalloc.get_traced_memory()[1] - before


def bytes_allowed(frame: bytes) -> int:
    """An error has a traceback, and a message its struct, however few bytes the frame has."""
    return 4096 + 4 * len(frame)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
def test_the_work_and_the_memory_for_a_damaged_frame_are_bounded(api: Api) -> None:
    """Calls instead of a clock; memory beside what an error takes."""
    tracemalloc.start()
    try:
        for version in api.versions:
            for kind in ("request", "response"):
                judge = Judge(api, version, kind)
                for frame in frames(judge, FEW):
                    outcome(judge, frame)  # what is kept for the next time is not of this frame
                    assert calls_of(judge, frame) <= 16 + 2 * len(frame), frame.hex()
                    assert takes_at_most(bytes_allowed(frame), judge, frame), frame.hex()
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "frame",
    [
        b"\1" + b"\xff\xff\xff\xff\x07",
        b"\1\x81\x80\x3d",
        b"\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    ],
)
def test_an_announced_length_costs_nothing(frame: bytes) -> None:
    judge = Judge(next(api for api in APIS if api.name == "delete_topics"), 5, "request")
    tracemalloc.start()
    try:
        assert outcome(judge, frame) is None
        assert takes_at_most(bytes_allowed(frame), judge, frame)
        assert calls_of(judge, frame) <= 16
    finally:
        tracemalloc.stop()


def factor(judge: Judge, frame: bytes) -> float:
    """The memory for a byte, beside `MESSAGE_BYTES`; no id is there from another frame."""
    return (peak_bytes(judge, frame, has_ids=False) - MESSAGE_BYTES) / len(frame)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
def test_the_memory_for_an_array_of_short_elements_is_bounded(api: Api) -> None:
    for version in api.versions:
        for kind in ("request", "response"):
            judge = Judge(api, version, kind)
            tracemalloc.start()
            try:
                for path, field, frame in crafted_frames(judge.layout, CRAFTED_BYTES, FEW_FILLINGS):
                    said = f"{judge.name}, {path}: {frame[:40].hex()}"
                    bound = MESSAGE_BYTES + int(factor_allowed(path, field) * len(frame))
                    assert takes_at_most(bound, judge, frame, has_ids=False), said
            finally:
                tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "version", "path"),
    [
        ("metadata", 1, "topics"),
        ("delete_groups", 2, "groups_names"),
        ("delete_topics", 5, "topic_names"),
        ("offset_fetch", 5, "topics.partition_indexes"),
        ("end_quorum_epoch", 0, "topics.partitions.preferred_successors"),
    ],
)
def test_the_bounds_are_reached(name: str, version: int, path: str) -> None:
    """By frames that are whole: no bound says more than what is true."""
    judge = Judge(next(api for api in APIS if api.name == name), version, "request")
    frames = [
        each for each in crafted_frames(judge.layout, 20_000, FEW_FILLINGS) if each[0] == path
    ]
    tracemalloc.start()
    try:
        for _, _, frame in frames:
            assert judge.read(frame, 0)[1] == len(frame)
        allowed = factor_allowed(path, frames[0][1])
        most = max(factor(judge, frame) for _, _, frame in frames)
        assert 0.8 * allowed <= most <= allowed
    finally:
        tracemalloc.stop()
