"""Where a register that a search decides is cut: at quiescent moments, when nothing is open.

Pieces follow one another by the calls of their accesses. One that knows when all before it has
ended finds its first quiescent call, at which a segment begins; what it has before that call is of
the segment before. Changes of unknown end are no rows here: see `searched_relations`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from jepsen_like.checkers.pairing import Column
from spark.columns import numbers, objects
from spark.pieces import Mapped, whole
from spark.searched_rows import SEARCHED, table_of
from spark.verdicts import named, run_and_name

__all__ = ["Segments", "find_cuts", "find_ends", "quiescent", "reached_before", "select_segments"]

Reach = Mapping[str, Mapping[int, int]]  # when all before a piece has ended, by its first call
_NOTHING = -2  # earlier than all, also than a read that may be old


def quiescent(call: Column, ret: Column, before: int = _NOTHING) -> Column:
    """Which calls, sorted, find nothing open. `before`: the last return of all that is earlier."""
    reach = np.maximum.accumulate(np.concatenate([[before], ret]))[:-1]
    return np.flatnonzero(reach < call)


def find_ends(mb: int) -> Mapped:
    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        for name, call, ret in _of_objects(rows):
            told = {"tag": "ends", "call": int(call[0]), "ret": int(ret.max())}
            yield _row(name, **told, count=len(call))

    return whole(judge, mb)


def reached_before(ends: Iterable[Mapping[str, Any]]) -> Reach:
    reach: dict[str, dict[int, int]] = defaultdict(dict)
    last: dict[str, int] = {}
    for row in sorted(ends, key=lambda each: int(each["call"])):
        name = named(row["run"], row["object"])
        reach[name][row["call"]] = last.get(name, _NOTHING)
        last[name] = max(last.get(name, _NOTHING), row["ret"])
    return reach


def find_cuts(reach: Reach, mb: int) -> Mapped:
    """A row of what is before the cut, without a call, and one of the cut, if there is one; `ret`
    is the first call of the piece."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        for name, call, ret in _of_objects(rows):
            cuts = quiescent(call, ret, reach[name][int(call[0])])
            at, begin = int(cuts[0]) if len(cuts) else len(call), int(call[0])
            yield _row(name, tag="cut", ret=begin, count=at)
            if len(cuts):
                yield _row(name, tag="cut", ret=begin, call=int(call[at]), count=len(call) - at)

    return whole(judge, mb)


@dataclass(frozen=True, slots=True)
class Segments:
    """The first calls of the segments of each register, and how many rows each has."""

    begins: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    sizes: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, cuts: Iterable[Mapping[str, Any]]) -> "Segments":
        """The first call of all is quiescent, so that nothing comes before a segment."""
        found = cls()
        order = sorted(cuts, key=lambda each: (each["ret"], each["call"] is not None))
        for row in order:
            name = named(row["run"], row["object"])
            if row["call"] is not None:
                found.begins[name].append(row["call"])
                found.sizes[name].append(row["count"])
            elif row["count"]:
                found.sizes[name][-1] += row["count"]
        return found

    def without(self, names: Collection[str]) -> "Segments":
        kept = [name for name in self.begins if name not in names]
        return Segments(
            {name: self.begins[name] for name in kept}, {name: self.sizes[name] for name in kept}
        )


def select_segments(segments: Segments, most: int, mb: int) -> Mapped:
    """Rows with the numbers of their segments, without those of segments that are too large."""
    begins = {name: np.array(each) for name, each in segments.begins.items()}
    fits = {name: np.array(each) <= most for name, each in segments.sizes.items()}

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        names, key = objects(rows)
        call = numbers(rows, "call")
        segment = np.full(len(rows), _NOTHING)
        for at, name in enumerate(names):
            if name in begins:
                mine = np.flatnonzero(key == at)
                of = np.searchsorted(begins[name], call[mine], side="right") - 1
                segment[mine] = np.where(fits[name][of], of, _NOTHING)
        at = SEARCHED.get_field_index("segment")
        told = rows.select(SEARCHED.names).set_column(at, SEARCHED.field(at), pa.array(segment))
        yield told.filter(pa.array(segment != _NOTHING))

    return whole(judge, mb)


def _of_objects(rows: pa.Table) -> Iterator[tuple[str, Column, Column]]:
    """The calls and returns of each register, by the calls."""
    names, key = objects(rows)
    call, ret = numbers(rows, "call"), numbers(rows, "ret")
    for at, name in enumerate(names):
        mine = np.flatnonzero(key == at)
        mine = mine[np.argsort(call[mine], kind="stable")]
        yield name, call[mine], ret[mine]


def _row(name: str, **columns: Any) -> pa.Table:
    run, of = run_and_name(name)
    return table_of([{"run": run, "object": of, **columns}])
