"""Jepsen's store: what its libraries wrote is read, and nothing that is damaged is believed.

`write_store.clj` says how the files beside this one came to be.
"""

import random
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from zlib import crc32

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories import jepsen_store
from jepsen_like.histories.history import MalformedHistory, Op
from jepsen_like.histories.interchange import read_as
from jepsen_like.histories.jepsen_store import read_jepsen
from quorumlab.cli import main
from quorumlab.histories import histories_in

HERE = Path(__file__).parent
WRITTEN = [(HERE / f"version-{version}.jepsen").read_bytes() for version in (0, 1)]

INDEX, VALUE, MAP, STREAM, VECTOR = range(1, 6)
Blocks = Mapping[int, tuple[int, bytes]]


def block(kind: int, content: bytes) -> bytes:
    length = 28 + len(content)
    checksum = crc32(struct.pack(">qIh14x", length, 0, kind), crc32(content))
    return struct.pack(">qIh14x", length, checksum, kind) + content


def store(blocks: Blocks, root: int = 1, version: int = 1) -> bytes:
    """The file begins with the index, so that its blocks may be cut."""
    places = struct.pack(">i", root)
    place = 18 + 28 + 4 + 12 * len(blocks)
    for number, (_, content) in blocks.items():
        places += struct.pack(">iq", number, place)
        place += 28 + len(content)
    rest = b"".join(block(kind, content) for kind, content in blocks.values())
    return struct.pack(">6siq", b"JEPSEN", version, 18) + block(INDEX, places) + rest


def vector(count: int, *parts: tuple[int, int]) -> tuple[int, bytes]:
    told = b"".join(struct.pack(">qi", *part) for part in parts)
    return VECTOR, struct.pack(">q", count) + told


def text(told: str) -> bytes:
    return bytes([0xE3, len(told)]) + told.encode()


def name(told: str) -> bytes:
    return b"\xca\xf7" + text(told)


def op(kind: str, value: int) -> bytes:
    """That process 3 writes this, without an index or a time."""
    tag = b"\xef" + text("jepsen.history.Op") + b"\x07"
    return tag + b"\xff\xff" + name(kind) + b"\x03" + name("write") + bytes([value]) + b"\xf7"


TEST = (VALUE, b"\xc0\xe6" + name("history") + b"\xef" + text("block-ref") + b"\x01\x02")
WHOLE: Blocks = {
    1: TEST,
    2: vector(5, (0, 3), (3, 4), (4, 5)),
    3: vector(3, (0, 6), (1, 7)),
    4: (VALUE, b"\xe5" + op("ok", 4)),
    5: (STREAM, op("invoke", 5)),
    6: (VALUE, b"\xed" + op("invoke", 1) + b"\xfd"),
    7: (STREAM, op("ok", 2) + op("invoke", 3)),
}


def ops(content: bytes) -> Sequence[Op]:
    return [each for lines in read_jepsen(BytesIO(content))[1] for each in lines.ops()]


@pytest.mark.parametrize("content", WRITTEN)
def test_both_versions_are_read_as_clojure_prints_their_values(content: bytes) -> None:
    history = read_as(content, ".jepsen")
    assert history == read_as((HERE / "history.edn").read_bytes(), ".edn")
    assert judge(history).objects == {"x": Outcome.VIOLATED, "y": Outcome.VALID}


@pytest.mark.parametrize("content", WRITTEN)
def test_flipped_bit_changes_no_operation(content: bytes) -> None:
    draw = random.Random(1)
    truth = ops(content)
    for place in draw.sample(range(len(content)), 20):
        damaged = bytearray(content)
        damaged[place] ^= 1 << draw.randrange(8)
        try:
            found = ops(bytes(damaged))
        except MalformedHistory:
            continue
        assert found == truth, f"byte {place}"


def test_damage_with_its_checksum_is_a_value_or_refused() -> None:
    draw = random.Random(2)
    for _ in range(30):
        number = draw.choice(list(WHOLE))
        kind, content = WHOLE[number]
        damaged = bytearray(content)
        damaged[draw.randrange(len(content))] = draw.randrange(256)
        with suppress(MalformedHistory):
            ops(store({**WHOLE, number: (kind, bytes(damaged))}))


@pytest.mark.parametrize("length", range(0, len(WRITTEN[1]), 150))
def test_file_that_is_cut_is_refused(length: int) -> None:
    with pytest.raises(MalformedHistory, match=r"byte|begins with"):
        ops(WRITTEN[1][:length])


def test_vectors_of_vectors_are_one_after_the_other() -> None:
    found = ops(store(WHOLE))
    assert [(each.index, each.time_ns, each.kind, each.value) for each in found] == [
        (at, at, "ok" if value in (2, 4) else "invoke", value)
        for at, value in enumerate(range(1, 6))
    ]


def test_history_may_stand_in_the_rest_of_the_map() -> None:
    blocks = {**WHOLE, 8: (MAP, struct.pack(">i", 9) + b"\xc0\xe4")}
    blocks[9] = (MAP, struct.pack(">i", 0) + TEST[1])
    assert ops(store(blocks, root=8)) == ops(store(WHOLE))


def test_operations_come_before_all_of_them_are_read() -> None:
    blocks = {**WHOLE, 5: (STREAM, b"\xce")}
    _, found = read_jepsen(BytesIO(store(blocks)))
    assert [len(next(found).f) for _ in range(3)] == [1, 2, 1]
    with pytest.raises(MalformedHistory, match=r"block 5, at byte .*no value begins with 0xce"):
        next(found)


def test_large_value_comes_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jepsen_store, "_PORTION", 3)
    blocks = {1: TEST, 2: (VALUE, b"\xed\xcd" + op("invoke", 1) + b"\x80" * 4 + b"\xfd")}
    _, found = read_jepsen(BytesIO(store(blocks)))
    assert [(lines.indexes[0], len(lines.f)) for lines in found] == [(0, 3), (3, 2)]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({1: (VALUE, b"\x07")}, "it has no test with a history"),
        ({1: (STREAM, b"")}, "block 1, at byte 134, of type 4: not the map of a test"),
        ({1: (MAP, struct.pack(">i", 1) + b"\xc0\xe4")}, "block 1, .*read before, or lies within"),
        ({1: (MAP, b"\0\0")}, "block 1, .*not the map of a test"),
        ({2: (VALUE, b"\xf7")}, "the run broke off before a part of its history was kept"),
        ({2: (VALUE, b"\x07")}, "block 2, at byte .*, byte .*: not a list"),
        ({2: (VALUE, b"\xe4\x00")}, "something follows the list"),
        ({2: (VALUE, b"\xe5\x07")}, "not an operation: 7"),
        ({2: (MAP, b"\xe5\x07")}, "block 2, .* of type 3: not a part of a history"),
        ({2: (9, b"")}, "block 2, .* of type 9: not a part of a history"),
        ({2: (VECTOR, b"\0" * 9)}, "block 2, .* not a vector of blocks"),
        ({2: vector(0, (0, 99))}, "block 99 is not in the index"),
        ({2: vector(0, (0, 2), (0, 2))}, "block 2, .*it was read before"),
        ({2: vector(5, (0, 3), (3, 4))}, "5 operations are said to come first: 4 came"),
        ({2: vector(4, (0, 3), (2, 4))}, "2 operations are said to come first: 3 came"),
        ({3: vector(2, (0, 6), (1, 7))}, "2 operations are said to come first: 3 came"),
    ],
)
def test_blocks_that_do_not_fit_are_refused_in_words(changed: Blocks, what: str) -> None:
    with pytest.raises(MalformedHistory, match=what):
        ops(store({**WHOLE, **changed}))


@pytest.mark.parametrize(
    ("place", "layout", "value", "what"),
    [
        (0, ">6s", b"jepsen", "not a file of Jepsen's store: it begins with b'jepsen'"),
        (6, ">i", 2, "byte 6: version 2"),
        (10, ">q", 0, "byte 10: it has no index"),
        (10, ">q", -1, "the index, at byte -1: the file has"),
        (10, ">q", 1 << 62, "the index, at byte 4611686018427387904: the file has"),
        (10, ">q", 134, "the index, at byte 134, of type 2: not an index"),
        (18, ">q", 27, "the index, at byte 18: 27 bytes long"),
        (18, ">q", -1, "the index, at byte 18: -1 bytes long"),
        (18, ">q", 1 << 62, "the index, at byte 18: 4611686018427387904 bytes long"),
        (26, ">i", 0, "the index, at byte 18: damaged: its checksum is not 0x00000000"),
        (30, ">h", 3, "the index, at byte 18: damaged"),
    ],
)
def test_file_that_says_nonsense_is_refused_in_words(
    place: int, layout: str, value: int | bytes, what: str
) -> None:
    content = bytearray(store(WHOLE))
    struct.pack_into(layout, content, place, value)
    with pytest.raises(MalformedHistory, match=what):
        ops(bytes(content))


def test_run_in_a_store_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "store" / "etcd" / "20240229T123456"
    run.mkdir(parents=True)
    (run.parent / "latest").symlink_to(run.name)
    for file, source in (("history.edn", "history.edn"), ("test.jepsen", "version-1.jepsen")):
        (run / file).write_bytes((HERE / source).read_bytes())
        assert histories_in(str(tmp_path)) == histories_in(str(run)) == [run / file]
    assert main(["check", str(run.parent / "latest"), "--on", "local"]) == 4
    assert "latest/test.jepsen: cas-register" in capsys.readouterr().out
