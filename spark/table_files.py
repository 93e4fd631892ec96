"""The files of tables: what their bytes were when they were made, and which groups hold which rows.

A wrong bit in a table must be no verdict. Parquet's own checksums are of the content of pages only,
and not of what says where pages are and what is in them. So the whole file is summed up, in
stretches that many workers can look at at once:

    PAR1  groups of rows  | sums  | footer  length of the footer  PAR1

`sums` are ours: a CRC-32 of each STRETCH_BYTES of what stands before, their number, a CRC-32 of
these and of the footer to the end of the file, and MARK. Readers of Parquet go to the footer from
the end, and from there to the groups by their places: they never see what lies between.

Groups of rows are read by the worker that judges them: it gets their names, not the rows. That is
several times as fast as rows which Spark has read, since they need not pass from its virtual
machine to Python. All machines must see the files, as for Spark itself.
"""

import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapreplace
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jepsen_like.histories.history import MalformedHistory
from spark.schema import SCHEMA
from spark.verdicts import named

__all__ = [
    "NAMES",
    "Stretch",
    "SummedUp",
    "damaged",
    "is_intact",
    "read",
    "seal",
    "shared_out",
    "stretches",
    "summed_up",
]

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


# Few different ones each, in millions of rows.
NAMES = ["run", "workload", "options", "object", "what", "process", "f", "kind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Groups that follow one another, and share no object with any other."""

    path: str
    groups: Sequence[int]
    rows: int


def stretches(paths: Sequence[Path], apart: Collection[str]) -> list[Stretch]:
    """All but those that hold nothing but rows of one of the objects that go another way."""
    found = []
    for path in paths:
        metadata = pq.read_metadata(path)
        for groups in _groups(metadata, apart):
            rows = sum(metadata.row_group(each).num_rows for each in groups)
            found.append(Stretch(path=str(path.absolute()), groups=groups, rows=rows))
    return found


def _groups(metadata: pq.FileMetaData, apart: Collection[str]) -> Iterator[list[int]]:
    waiting: list[int] = []
    last = None
    for number in range(metadata.num_row_groups):
        ends = _ends(metadata.row_group(number))
        if waiting and (last is None or ends is None or ends[0] != last):
            yield waiting
            waiting = []
        last = ends[1] if ends else None
        if ends is None or ends[0] != ends[1] or last not in apart:
            waiting = [*waiting, number]
    if waiting:
        yield waiting


def shared_out(found: Iterable[Stretch], tasks: int) -> list[list[Stretch]]:
    """Tasks of about as many rows each, those with the most first."""
    shares: list[tuple[int, int, list[Stretch]]] = [(0, task, []) for task in range(tasks)]
    for stretch in sorted(found, key=lambda each: each.rows, reverse=True):
        rows, task, mine = shares[0]
        heapreplace(shares, (rows + stretch.rows, task, [*mine, stretch]))
    return [mine for _, _, mine in sorted(shares, reverse=True) if mine]


def read(mine: Iterable[Stretch], apart: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Their rows, but those of the objects that go another way."""
    for stretch in mine:
        file = pq.ParquetFile(stretch.path, read_dictionary=NAMES)
        for group in stretch.groups:
            rows = file.read_row_group(group, SCHEMA.names)
            if apart:
                names = (rows.column(name).cast(pa.string()) for name in ("run", "object"))
                is_apart = pc.is_in(pc.binary_join_element_wise(*names, "\t"), pa.array(apart))
                rows = rows.filter(pc.invert(is_apart))
            yield from rows.to_batches()


def _ends(group: pq.RowGroupMetaData) -> tuple[str, str] | None:
    """The names of its first object and of its last; None: not told."""
    least, most = {}, {}
    for at in range(group.num_columns):
        column = group.column(at)
        if column.path_in_schema in ("run", "object"):
            if column.statistics is None or not column.statistics.has_min_max:
                return None
            least[column.path_in_schema] = column.statistics.min
            most[column.path_in_schema] = column.statistics.max
    first, last = (named(told["run"], told["object"]) for told in (least, most))
    return first, last
