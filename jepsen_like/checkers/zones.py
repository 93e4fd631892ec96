"""Two exact tests of linearizability on columns, each in one pass: moments in order, and zones.

`Bounds`: things became visible one after the other. Let T(k) be the moment at which place k of an
object became visible (an offset of a log, a version of a register). Operations bound it from below
and from above. Moments in the order of the places exist if and only if, for every k, the greatest
lower bound of all places up to k lies before the upper bound of k: take for T(k) the moment right
after that greatest lower bound.

`Clusters`: each value of a register is written once. A value with its write and its reads is a
cluster. It must hold at least from the first return among them to the last call among them: its
zone. Where the zone is forwards in time (the return is before the call), nothing else can hold
meanwhile; where it is backwards, one moment within it will do. The register is linearizable if and
only if no read returned before its write was called, no two forward zones meet, and no backward
zone lies inside a forward one. Values that compare-and-sets made one of another are one cluster:
see `register_accesses`. The initial value is a write before all else. Source: Gibbons and Korach,
"Testing shared memories".

`sound` sees in one pass which of many registers are surely right: those with reads and writes only,
each value written once. The others are left to `registers`, which tells what is wrong, and by what.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.pairing import (
    Column,
    Mask,
    Pairing,
    is_close,
    numbered,
    order_of,
    running_maximum,
)
from jepsen_like.checkers.verdict import Verdict

__all__ = [
    "Accesses",
    "Bounds",
    "Clusters",
    "RegisterColumns",
    "Rows",
    "clashes",
    "sound",
    "sound_verdict",
]

Rows = tuple[Column, Column, Column, Column]  # key, place, moment, the operation that says so
_NOBODY = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounds:
    """The bounds of each place that anybody named, sorted by key and place."""

    key: Column
    place: Column
    lower: Column  # -1: none
    lower_by: Column
    upper: Column  # NEVER: none
    upper_by: Column

    @classmethod
    def of(cls, lower: Rows, upper: Rows) -> "Bounds":
        return cls.of_parts([lower], [upper])

    @classmethod
    def of_parts(cls, lower: Sequence[Rows], upper: Sequence[Rows]) -> "Bounds":
        """Each side in as many parts as there are."""
        told = [(part[0], part[1]) for part in (*lower, *upper)]
        pairing = Pairing.of(*(column for pair in told for column in pair))
        known, numbers, size = _numbered([pairing.pairs(*pair) for pair in told], pairing.size)
        split = len(lower)
        low, low_by = _extreme(size, numbers[:split], lower, is_maximum=True)
        high, high_by = _extreme(size, numbers[split:], upper, is_maximum=False)
        places = known if size == pairing.size else np.arange(size)
        return cls(
            key=pairing.first(known),
            place=pairing.second(known),
            lower=low[places],
            lower_by=low_by[places],
            upper=high[places],
            upper_by=high_by[places],
        )

    def broken(self) -> tuple[Column, Column]:
        """Places without a moment, and for each the earlier place whose lower bound forbids it."""
        running, places = running_maximum(self.lower, self.key)
        late = np.flatnonzero(running >= self.upper)
        return late, places[late]


def _numbered(parts: Sequence[Column], size: int) -> tuple[Column, Sequence[Column], int]:
    """Which numbers there are, and the parts and the size, made smaller if few of them are."""
    if is_close(size, sum(map(len, parts))):
        is_there = np.zeros(size, dtype=bool)
        for part in parts:
            is_there[part] = True
        return np.flatnonzero(is_there), parts, size
    known = np.unique(np.concatenate(parts))
    return known, [np.searchsorted(known, part) for part in parts], len(known)


def _extreme(
    size: int, numbers: Sequence[Column], sides: Sequence[Rows], *, is_maximum: bool
) -> tuple[Column, Column]:
    """Finds the latest (or earliest) bound of each number, and whose it is."""
    moment = np.full(size, -1 if is_maximum else NEVER, dtype=np.int64)
    by = np.full(size, _NOBODY, dtype=np.int64)
    extreme = np.maximum if is_maximum else np.minimum
    for number, (_, _, moments, _) in zip(numbers, sides, strict=True):
        extreme.at(moment, number, moments)
    for number, (_, _, moments, operations) in zip(numbers, sides, strict=True):
        mine = np.flatnonzero(moments == moment[number])
        by[number[mine]] = operations[mine]
    return moment, by


_BEFORE_ALL = -2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Accesses:
    """Reads, and writes that may have happened. Value -1 is the initial one: it has no write."""

    key: Column
    value: Column
    call: Column
    ret: Column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clusters:
    """The zone of each key and value, and the accesses (-1: none) that bound it."""

    cluster: Column  # of each access: where in these columns its cluster is
    key: Column
    value: Column
    first: Column  # return
    first_by: Column
    last: Column  # call
    last_by: Column

    @classmethod
    def of(cls, accesses: Accesses) -> "Clusters":
        pairing = Pairing.of(accesses.key, accesses.value)
        codes = pairing.pairs(accesses.key, accesses.value)
        pairs, where = numbered(codes, pairing.size)
        is_initial = pairing.second(pairs) < 0
        first = np.where(is_initial, _BEFORE_ALL, NEVER)
        last = np.full(len(pairs), _BEFORE_ALL, dtype=np.int64)
        first_by, last_by = np.full((2, len(pairs)), -1, dtype=np.int64)
        np.maximum.at(last, where, accesses.call)
        np.minimum.at(first, where, accesses.ret)
        for by, moment, extreme in (
            (last_by, accesses.call, last),
            (first_by, accesses.ret, first),
        ):
            rows = np.flatnonzero(moment == extreme[where])
            by[where[rows]] = rows
        return cls(
            cluster=where,
            key=pairing.first(pairs),
            value=pairing.second(pairs),
            first=first,
            first_by=first_by,
            last=last,
            last_by=last_by,
        )


def clashes(clusters: Clusters) -> tuple[Column, Column]:
    """Pairs of clusters of one key of which one must hold while the other must."""
    forward = np.flatnonzero(clusters.first < clusters.last)
    begins = clusters.first[forward] + clusters.key[forward] * _lift(clusters)
    order = forward[order_of(begins - _BEFORE_ALL)]
    meet = _forward(clusters, order)
    inside = _backward(clusters, order)
    return np.concatenate([meet[0], inside[0]]), np.concatenate([meet[1], inside[1]])


def _forward(clusters: Clusters, order: Column) -> tuple[Column, Column]:
    """Forward zones that begin before an earlier one has ended."""
    ends, longest = _running_ends(clusters, order)
    before, after = longest[:-1], order[1:]
    same_key = clusters.key[order[:-1]] == clusters.key[after]
    meets = same_key & (clusters.first[after] < ends[:-1])
    return before[meets], after[meets]


def _backward(clusters: Clusters, order: Column) -> tuple[Column, Column]:
    """Backward zones inside the forward zone that has begun before them and ends last."""
    backward = np.flatnonzero(clusters.first >= clusters.last)
    if not len(order):
        return backward[:0], backward[:0]
    ends, longest = _running_ends(clusters, order)
    lift = _lift(clusters)
    begins = clusters.first[order] + clusters.key[order] * lift
    wanted = clusters.last[backward] + clusters.key[backward] * lift
    at = np.searchsorted(begins, wanted) - 1
    holder = np.maximum(at, 0)
    inside = (
        (at >= 0)
        & (clusters.key[order[holder]] == clusters.key[backward])
        & (ends[holder] > clusters.first[backward])
    )
    return longest[holder[inside]], backward[inside]


def _running_ends(clusters: Clusters, order: Column) -> tuple[Column, Column]:
    """For each zone: the last end among those of its key up to it, and whose it is."""
    running, at = running_maximum(clusters.last[order], clusters.key[order])
    return running, order[at]


def _lift(clusters: Clusters) -> int:
    """More than any moment: added once a key, it keeps the keys apart in one ascending column."""
    return int(clusters.last.max(initial=0)) - 2 * _BEFORE_ALL


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegisterColumns:
    """One row an access that says something: reads that are ok, writes that have not failed."""

    keys: Sequence[str]
    accesses: Accesses  # value -1: never written; nobody writes it
    is_write: Mask


def sound(columns: RegisterColumns) -> Mask:
    """For each key: is every value written once, and is it linearizable?"""
    accesses, is_write = columns.accesses, columns.is_write
    clusters = Clusters.of(accesses)
    count = len(clusters.key)
    written = np.full(count, NEVER)
    written[clusters.cluster[is_write]] = accesses.call[is_write]
    writes = np.bincount(clusters.cluster[is_write], minlength=count)
    # A value that was never written is seen from the beginning on; another one after its write.
    is_wrong = (clusters.value >= 0) & ((writes != 1) | (clusters.first < written))
    is_sound = np.ones(len(columns.keys), dtype=bool)
    is_sound[clusters.key[is_wrong]] = False
    is_sound[clusters.key[clashes(clusters)[0]]] = False
    return is_sound


def sound_verdict(names: Sequence[str]) -> Verdict:
    """As `registers` tells it."""
    return Verdict.of([], {"registers": len(names), "by zones": len(names)}, objects=names)
