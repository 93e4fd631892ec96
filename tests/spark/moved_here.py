"""Rows that move without Spark: what is together is a piece, or a few; what is in order is cut."""

from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from spark.pieces import Mapped

__all__ = ["Here", "Rows"]

Rows = list[pa.Table]  # pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """`size`: how many groups of equal rows a piece has."""

    size: int

    def mapped(self, frame: Rows, judge: Mapped, schema: pa.Schema) -> Rows:
        return [pa.Table.from_batches(judge(each.to_batches()), schema) for each in frame]

    def together(self, frame: Rows, *columns: str) -> Rows:
        return self._cut(frame, columns)[::-1]  # as on Spark, pieces are in no order

    def in_order(self, frame: Rows, *columns: str) -> Rows:
        return self._cut(frame, columns)

    def tagged(self, frame: Rows, *tags: str) -> Rows:
        return [each.filter(pc.is_in(each["tag"], pa.array(tags))) for each in frame]

    def both(self, one: Rows, other: Rows) -> Rows:
        return one + other

    def kept(self, frame: Rows) -> Rows:
        return frame

    def collected(self, frame: Rows) -> pa.Table:
        return pa.concat_tables(frame)

    def _cut(self, frame: Rows, columns: tuple[str, ...]) -> Rows:
        rows = pa.concat_tables(frame)
        rows = rows.sort_by([(each, "ascending") for each in columns])
        keys = [tuple(row.values()) for row in rows.select(columns).to_pylist()]
        starts = [at for at, key in enumerate(keys) if not at or key != keys[at - 1]]
        cuts = [*starts[:: self.size], len(keys)]
        pieces = [rows.slice(begin, end - begin) for begin, end in pairwise(cuts)]
        return pieces or [rows]
