"""Damaged files: what is told, and what can still be read."""

import os
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quorumlab.inspection.batches import Batch, Damage, batches_in, last_batch
from quorumlab.inspection.entries import entries

GOLDEN = Path(__file__).parents[2] / "golden"
SEGMENT = GOLDEN / "kraft3/node-1/__cluster_metadata-0/00000000000000000000.log"
CONTENT = SEGMENT.read_bytes()


NAME = Path("00000000000000000000.log")


def read(content: bytes) -> tuple[list[Batch], list[Damage]]:
    """Every record of every batch is decoded, too."""
    found = list(batches_in(BytesIO(content), NAME))
    batches = [each for each in found if isinstance(each, Batch)]
    for batch in batches:
        assert list(entries(batch))
    return batches, [each for each in found if isinstance(each, Damage)]


WHOLE, _ = read(CONTENT)


def positions(batches: list[Batch]) -> list[int]:
    return [batch.position for batch in batches]


def test_an_intact_file_has_no_damage() -> None:
    batches, damage = read(CONTENT)
    assert not damage
    assert sum(batch.header.size_bytes for batch in batches) == len(CONTENT)


def test_zeros_at_the_end_are_no_damage() -> None:
    assert read(CONTENT + bytes(10_000))[1] == []


def test_an_empty_file_has_nothing() -> None:
    assert read(b"") == ([], [])


@given(st.integers(1, len(CONTENT) - 1))
def test_a_cut_loses_only_the_batch_that_it_hits(cut: int) -> None:
    batches, damage = read(CONTENT[:cut])
    kept = [each for each in WHOLE if each.position + each.header.size_bytes <= cut]
    end = sum(each.header.size_bytes for each in kept)
    assert positions(batches) == positions(kept)
    is_torn = any(CONTENT[end:cut])  # zeros alone are taken for preallocated ones
    assert [(each.position, each.is_tail) for each in damage] == [(end, True)] * is_torn


@given(st.integers(0, 8 * len(CONTENT) - 1))
def test_a_flipped_bit_loses_only_the_batch_that_it_hits(bit: int) -> None:
    content = bytearray(CONTENT)
    content[bit // 8] ^= 1 << bit % 8
    batches, damage = read(bytes(content))
    start, end = next(
        (each.position, each.position + each.header.size_bytes)
        for each in WHOLE
        if bit // 8 < each.position + each.header.size_bytes
    )
    untouched = [each for each in WHOLE if not start <= each.position < end]
    assert set(positions(untouched)) <= set(positions(batches))
    assert all(start <= each.position < end for each in damage)


@pytest.mark.parametrize(
    ("filler", "size"),
    [
        (b"\0", 9_000_000),
        (b"\2", 9_000_000),
        *((b"\2", size) for size in range(4_194_304 - 65, 4_194_304 + 5, 3)),
    ],
)
def test_what_follows_much_damage_is_found(filler: bytes, size: int) -> None:
    """Wherever its first bytes lie in the pieces that are read."""
    start = WHOLE[7].position
    batches, damage = read(CONTENT[:start] + filler * size + CONTENT[start:])
    assert [each.header for each in batches] == [each.header for each in WHOLE]
    (only,) = damage
    assert (only.position, only.is_tail) == (start, False)
    assert f"{size} bytes skipped" in only.problem


class BeingWritten(BytesIO):
    """A preallocated file: `cut` of its bytes are there at the first look, all at any later one."""

    def __init__(self, cut: int) -> None:
        super().__init__(CONTENT[:cut] + bytes(len(CONTENT) - cut + 10_000))

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        place = self.tell()
        self.seek(0)
        self.write(CONTENT)
        self.seek(place)
        return found


@given(st.integers(1, len(CONTENT) - 1))
@example(WHOLE[7].position)
def test_what_is_written_while_it_is_read_is_no_damage(cut: int) -> None:
    found = list(batches_in(BeingWritten(cut), NAME))
    assert not [each for each in found if isinstance(each, Damage)]
    assert len(found) in (len(WHOLE), sum(each.position < cut for each in WHOLE))


@pytest.mark.parametrize("zeros", [0, 1, 4_194_304, 300 << 20])
def test_the_last_batch_lies_before_any_zeros(tmp_path: Path, zeros: int) -> None:
    path = tmp_path / NAME
    path.write_bytes(CONTENT)
    os.truncate(path, len(CONTENT) + zeros)
    last = last_batch(path)
    assert last is not None
    assert last.header == WHOLE[-1].header


@given(st.binary(max_size=2000))
def test_any_bytes_are_read_without_an_error(content: bytes) -> None:
    read(content)
