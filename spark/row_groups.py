"""Groups of rows of tables, read by whoever judges them: a worker gets their names, not the rows.

That is several times as fast as rows which Spark has read, since they need not pass from its
virtual machine to Python. All machines must see the files, as for Spark itself.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark.schema import SCHEMA
from spark.verdicts import named

__all__ = ["NAMES", "Stretch", "read", "stretches"]

# Few different ones each, in millions of rows.
NAMES = ["run", "workload", "options", "object", "what", "process", "f", "kind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Groups that follow one another, and share no object with any other."""

    path: str
    groups: Sequence[int]


def stretches(paths: Sequence[Path], apart: Collection[str]) -> list[Stretch]:
    """All but those that hold nothing but rows of one of the objects that go another way."""
    found: list[Stretch] = []
    for path in paths:
        metadata = pq.read_metadata(path)
        waiting: list[int] = []
        last = None
        for number in range(metadata.num_row_groups):
            ends = _ends(metadata.row_group(number))
            if waiting and (last is None or ends is None or ends[0] != last):
                found.append(Stretch(path=str(path.absolute()), groups=waiting))
                waiting = []
            last = ends[1] if ends else None
            if ends is None or ends[0] != ends[1] or last not in apart:
                waiting = [*waiting, number]
        if waiting:
            found.append(Stretch(path=str(path.absolute()), groups=waiting))
    return found


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
