"""Whatever is wrong with a directory: every verb says so in words, and its exit code tells."""

import io
import shutil
import struct
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlab.cli import main
from wire.batch import BatchHeader, headers, write_header

GOLDEN = Path(__file__).parents[2] / "golden"
NODES = ("kraft3/node-1", "dynamic/node-2", "standalone/after-restart", "versions/node-1")
LOG = "__cluster_metadata-0/00000000000000000000.log"
READ_ALL = (
    ("summary",),
    ("summary", "--format", "json"),
    ("dump",),
    ("dump", "--format", "json"),
    ("dump", "--hex"),
    ("dump", "--where", "leader == 1 or name > 5"),
    ("at", "end"),
    ("why", "broker 1"),
    ("verify",),
    ("export", "--parquet", "TABLES"),
)
OTHERS = (
    ("at", "20"),
    ("diff", "3", "30"),
    ("why", "six-0"),
    ("why", "config six"),
    ("dump", "--topic", "six", "--offsets", "10..50"),
)
DOCTOR = ("doctor",)


def run(verb: tuple[str, ...], target: Path) -> tuple[int, str]:
    """The exit code, and all that was said."""
    said = io.StringIO()
    words = verb if verb == DOCTOR else ("inspect", *verb)
    words = tuple(str(target.parent / "tables") if word == "TABLES" else word for word in words)
    with redirect_stdout(said), redirect_stderr(said):
        code = main([*words, str(target)])
    return code, said.getvalue()


def files_of(node: str) -> list[str]:
    root = GOLDEN / node
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and path.stat().st_size
    )


Change = Callable[[bytearray], bytearray]


def flipped(place: float, bit: int) -> Change:
    def change(content: bytearray) -> bytearray:
        content[int(place * len(content))] ^= 1 << bit
        return content

    return change


def cut(place: float) -> Change:
    return lambda content: content[: int(place * len(content))]


def overwritten(place: float, junk: bytes) -> Change:
    def change(content: bytearray) -> bytearray:
        start = int(place * len(content))
        content[start : start + len(junk)] = junk
        return content

    return change


within = st.floats(0, 1, exclude_max=True)
changes = (
    st.builds(flipped, within, st.integers(0, 7))
    | st.builds(cut, within)
    | st.builds(overwritten, within, st.binary(min_size=1, max_size=80))
)


@given(data=st.data(), node=st.sampled_from(NODES), change=changes)
def test_no_damage_is_an_error_of_ours(data: st.DataObject, node: str, change: Change) -> None:
    name = data.draw(st.sampled_from(files_of(node)))
    verb = data.draw(st.sampled_from((*READ_ALL, *OTHERS, ("tree",), DOCTOR)))
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "node"
        shutil.copytree(GOLDEN / node, copy)
        path = copy / name
        path.write_bytes(change(bytearray(path.read_bytes())))
        code, said = run(verb, copy)
        assert code in (0, 1, 3, 4), said


@given(place=within, bit=st.integers(0, 7), verb=st.sampled_from(READ_ALL))
def test_a_flipped_bit_of_the_log_is_never_missed(
    place: float, bit: int, verb: tuple[str, ...]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "node"
        shutil.copytree(GOLDEN / "kraft3/node-1", copy)
        content = flipped(place, bit)(bytearray((copy / LOG).read_bytes()))
        (copy / LOG).write_bytes(content)
        code, said = run(verb, copy)
        assert code != 0
        assert "00000000000000000000.log at byte" in said or "offset" in said, said


@given(place=within, verb=st.sampled_from(READ_ALL))
def test_half_a_batch_is_never_missed(place: float, verb: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        content = (GOLDEN / "kraft3/node-1" / LOG).read_bytes()
        path = Path(directory) / Path(LOG).name
        path.write_bytes(content[: int(place * len(content))])
        code, said = run(verb, path)
        assert code != 0 or not is_torn(path.read_bytes()), said


@given(
    data=st.data(),
    node=st.sampled_from(NODES),
    verb=st.sampled_from((*READ_ALL, *OTHERS, ("tree",), ("tree", "-r"), DOCTOR)),
)
def test_nonsense_with_a_right_checksum_is_no_error_of_ours(
    data: st.DataObject, node: str, verb: tuple[str, ...]
) -> None:
    """As a later release may write it, or one with a mistake."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "node"
        shutil.copytree(GOLDEN / node, copy)
        names = [name for name in files_of(node) if name.endswith((".log", ".checkpoint"))]
        path = copy / data.draw(st.sampled_from(names))
        content = bytearray(path.read_bytes())
        position, header = data.draw(st.sampled_from(list(headers(content))))
        at = position + data.draw(st.integers(21, header.size_bytes - 1))
        content[at] = data.draw(st.integers(0, 255))
        batch = memoryview(content)[position : position + header.size_bytes]
        write_header(batch, BatchHeader._make(struct.unpack_from(">qiibIhiqqqhii", batch)))
        path.write_bytes(content)
        code, said = run(verb, copy)
        assert code in (0, 1, 3, 4), said


def is_torn(content: bytes) -> bool:
    """By lengths alone: does the last batch go on behind the end? Zeros are preallocated."""
    position = 0
    while position + 12 <= len(content):
        size = int.from_bytes(content[position + 8 : position + 12]) + 12
        if position + size > len(content):
            return any(content[position:])
        position += size
    return any(content[position:])


@pytest.mark.parametrize("verb", [*READ_ALL, *OTHERS, ("tree",), DOCTOR], ids=" ".join)
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.write_bytes(b""), "is empty"),
        (
            lambda path: shutil.copy(GOLDEN / "data/node-1/t-0" / path.name, path),
            "is the log of another topic",
        ),
        (
            lambda path: shutil.copy(GOLDEN / "data/node-1/__consumer_offsets-0" / path.name, path),
            "is the log of another topic",
        ),
        (lambda path: path.write_text("2026-11-22 started\n" * 90), "is no metadata log"),
    ],
    ids=["empty", "another topic", "groups", "text"],
)
def test_what_is_no_metadata_log_is_called_by_its_name(
    tmp_path: Path, verb: tuple[str, ...], make: Callable[[Path], object], reason: str
) -> None:
    path = tmp_path / Path(LOG).name
    make(path)
    code, said = run(verb, path)
    assert code == (3 if verb == DOCTOR else 1)
    assert reason in said
