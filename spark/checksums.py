"""What a table's bytes were when it was made: a wrong bit in it must be no verdict.

Parquet's own checksums are of the content of pages only, and not of what says where pages are and
what is in them. So the whole file is summed up, in stretches that many workers can look at at once:

    PAR1  groups of rows  | sums  | footer  length of the footer  PAR1

`sums` are ours: a CRC-32 of each STRETCH_BYTES of what stands before, their number, a CRC-32 of
these and of the footer to the end of the file, and MARK. Readers of Parquet go to the footer from
the end, and from there to the groups by their places: they never see what lies between.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from jepsen_like.histories.history import MalformedHistory

__all__ = ["SummedUp", "damaged", "is_intact", "seal", "summed_up"]

STRETCH_BYTES = 16 << 20
_MARK = b"QLSUMS1\n"
_TAIL = struct.Struct(f"<II{len(_MARK)}s")  # how many sums, CRC-32 of them and the footer, MARK
_MAGIC = b"PAR1"
_TRAILER = struct.Struct(f"<I{len(_MAGIC)}s")  # length of the footer, _MAGIC


class SummedUp(NamedTuple):
    """A stretch of a file, and its sum."""

    path: str
    begin: int
    size: int
    crc: int


def seal(path: Path) -> None:
    """Puts the sums into a Parquet file that has none."""
    with path.open("r+b") as file:
        end = _footer(path)
        counts = (min(STRETCH_BYTES, end - begin) for begin in range(0, end, STRETCH_BYTES))
        crcs = [crc32(file.read(count)) for count in counts]
        footer = file.read()
        sums = struct.pack(f"<{len(crcs)}I", *crcs)
        file.seek(end)
        file.write(sums + _TAIL.pack(len(crcs), crc32(footer, crc32(sums)), _MARK) + footer)


def summed_up(path: Path) -> Iterator[SummedUp]:
    """The stretches of the file. Raises `MalformedHistory` where the sums themselves are wrong."""
    end = _footer(path)
    with path.open("rb") as file:
        try:
            file.seek(end - _TAIL.size)
            count, crc, mark = _TAIL.unpack(file.read(_TAIL.size))
            file.seek(end - _TAIL.size - 4 * count)
            sums = file.read(4 * count)
        except (OSError, ValueError, struct.error) as error:  # a place before the file
            raise damaged(path) from error
        file.seek(end)
        if mark != _MARK or crc32(file.read(), crc32(sums)) != crc:
            raise damaged(path)
    end -= _TAIL.size + 4 * count
    for number, (stretch,) in enumerate(struct.iter_unpack("<I", sums)):
        begin = number * STRETCH_BYTES
        yield SummedUp(str(path.absolute()), begin, min(STRETCH_BYTES, end - begin), stretch)


def is_intact(stretch: SummedUp) -> bool:
    with Path(stretch.path).open("rb") as file:
        file.seek(stretch.begin)
        return crc32(file.read(stretch.size)) == stretch.crc


def _footer(path: Path) -> int:
    """Where it begins."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TRAILER.size))
        trailer = file.read()
    if len(trailer) < _TRAILER.size:
        raise damaged(path)
    length, magic = _TRAILER.unpack(trailer)
    begin = size - _TRAILER.size - int(length)
    if magic != _MAGIC or begin < len(_MAGIC):
        raise damaged(path)
    return begin


def damaged(path: Path | str) -> MalformedHistory:
    return MalformedHistory(
        f"{path}: damaged: it is not what was written; remove it, and check its history again"
    )
