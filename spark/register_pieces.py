"""What is done with a piece of a register that is too large for one worker.

Each value of a register is written once, and must hold in its zone: see `checkers.zones`. A piece
of some values each finds what is wrong with one of them, and hands on their zones, a row each. A
piece of zones that follow one another, by the moment at which they begin, finds those that clash;
what reaches furthest of the zones before it is handed to it (`carried_on`).

A zone in rows: `lower` is its first return and `upper` its last call, of the operations at the
places `lower_by` and `upper_by`. One whose `lower` comes first is forwards: nothing else may hold
meanwhile.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jepsen_like.checkers.pairing import Column
from jepsen_like.checkers.verdict import Finding, Told, Verdict, places, report
from jepsen_like.checkers.zones import Clusters, RegisterColumns, clashes
from spark.columns import Values, numbers, objects, register_columns, values
from spark.piece_rows import HANDED_ON, filled, verdict_row
from spark.pieces import Mapped, names_of, whole

__all__ = ["ACCESSES", "by_moment", "by_value", "carried_on"]

ACCESSES = [
    *("run", "object", "f", "kind", "call", "ret", "invoked", "completed", "number", "value"),
]
_NONE = -1


def by_value(mb: int) -> Mapped:
    """Pieces of some values each, in any order: reads and writes, and nothing else."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        piece = _Values(rows)
        verdict = Verdict.of(piece.findings())
        if verdict.findings:
            yield verdict_row(verdict)
        yield piece.zones("twice", np.flatnonzero(piece.writes > 1))
        yield piece.zones("zone", np.flatnonzero(piece.writes <= 1))

    return whole(judge, mb)


class _Values:
    """The zone of each value of the piece."""

    def __init__(self, rows: pa.Table) -> None:
        self.found, code = values(rows)
        self.names, key = objects(rows)
        is_write = np.asarray(pc.equal(rows.column("f"), "write"))
        is_ok, has_failed = (np.asarray(pc.equal(rows.column("kind"), e)) for e in ("ok", "fail"))
        says = np.where(is_write, ~has_failed, is_ok)
        never = np.flatnonzero(is_write & has_failed)
        self.failed = set(zip(key[never].tolist(), code[never].tolist(), strict=True))
        of = places(numbers(rows, "invoked"), numbers(rows, "completed"))
        columns: RegisterColumns = register_columns(rows)
        self.operation, self.code = of[says], code[says]
        self.clusters = Clusters.of(columns.accesses)
        cluster, count = self.clusters.cluster, len(self.clusters.key)
        self.writes = np.bincount(cluster[columns.is_write], minlength=count)
        self.writes[self.clusters.value < 0] = 1  # the initial value
        self.write = np.full(count, _NONE)
        self.write[cluster[columns.is_write]] = np.flatnonzero(columns.is_write)
        self.call = columns.accesses.call

    def findings(self) -> Iterator[Finding]:
        clusters = self.clusters
        never = np.flatnonzero(self.writes == 0).tolist()
        has_failed = [each for each in never if self._is_of_failed(each)]
        yield from self._report("phantom", sorted({*never} - {*has_failed}), "nobody wrote it")
        yield from self._report("G1a", has_failed, "its write failed")
        written = np.flatnonzero((self.writes == 1) & (self.write >= 0))
        early = written[clusters.first[written] < self.call[self.write[written]]]

        def tell(at: int) -> Told:
            cluster = int(early[at])
            shows = clusters.first_by[cluster], self.write[cluster]
            detail = f"{self._value(cluster)!r} was read before it was written"
            return detail, [int(self.operation[each]) for each in shows]

        yield from report("not-linearizable", self.names, clusters.key[early], tell)

    def _is_of_failed(self, cluster: int) -> bool:
        return (int(self.clusters.key[cluster]), self._code(cluster)) in self.failed

    def _report(self, rule: str, clusters: Sequence[int], why: str) -> Iterator[Finding]:
        def tell(at: int) -> Told:
            cluster = clusters[at]
            shown = [int(self.operation[self.clusters.first_by[cluster]])]
            return f"{self._value(cluster)!r} was read, and {why}", shown

        keys = self.clusters.key[np.array(clusters, dtype=np.int64)]
        yield from report(rule, self.names, keys, tell)

    def _code(self, cluster: int) -> int:
        return int(self.code[self.clusters.last_by[cluster]])

    def _value(self, cluster: int) -> Any:
        return self.found[self._code(cluster)]

    def zones(self, tag: str, rows: Column) -> pa.Table:
        clusters = self.clusters
        first_by, last_by = clusters.first_by[rows], clusters.last_by[rows]
        number, other = self.found.columns(self.code[last_by])
        by = np.where(first_by >= 0, self.operation[first_by], _NONE)
        columns = {
            **names_of(self.names, clusters.key[rows]),
            "number": number,
            "value": other,
            "lower": clusters.first[rows],
            "lower_by": pa.array(by, mask=by < 0),
            "upper": clusters.last[rows],
            "upper_by": self.operation[last_by],
        }
        return filled(tag, len(rows), columns)


def by_moment(carried: Mapping[int, pa.Table], mb: int) -> Mapped:
    """Pieces of zones that follow one another; what is carried on to which."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        carry = carried.get(rows.column("piece")[0].as_py())
        rows = rows.select(HANDED_ON.names)
        if carry is not None:
            rows = pa.concat_tables([carry, rows])
        verdict = Verdict.of(_clashing(rows))
        if verdict.findings:
            yield verdict_row(verdict)

    return whole(judge, mb)


def _clashing(rows: pa.Table) -> list[Finding]:
    names, key = objects(rows)
    found, code = values(rows)
    first, last = numbers(rows, "lower"), numbers(rows, "upper")
    first_by, last_by = numbers(rows, "lower_by"), numbers(rows, "upper_by")
    every = np.arange(len(rows))
    zones = Clusters(
        cluster=every,
        key=key,
        value=code,
        first=first,
        first_by=first_by,
        last=last,
        last_by=last_by,
    )
    one, other = clashes(zones)

    def tell(at: int) -> Told:
        holds, comes = int(one[at]), int(other[at])
        there, between = (_value(found, int(code[each])) for each in (holds, comes))
        detail = f"{there!r} was there before and after, and {between!r} in between"
        by = (first_by[holds], last_by[holds], first_by[comes], last_by[comes])
        return detail, [int(each) for each in by if each >= 0]

    return report("not-linearizable", names, key[one], tell)


def _value(found: Values, code: int) -> Any:
    return found[code]


def carried_on(ends: Iterable[Mapping[str, Any]]) -> dict[int, pa.Table]:
    """For each piece the forward zone of each register that reaches furthest before it.

    `ends` have that of each piece and register, as `latest`; None: there is none.
    """
    furthest: dict[tuple[str, str], Mapping[str, Any]] = {}
    carried: dict[int, Sequence[Mapping[str, Any]]] = {}
    ordered = sorted(ends, key=lambda each: int(each["piece"]))
    for number in dict.fromkeys(each["piece"] for each in ordered):
        mine = [each for each in ordered if each["piece"] == number]
        there = [furthest.get((each["run"], each["object"])) for each in mine]
        carried[number] = [each for each in there if each is not None]
        for each in mine:
            register, latest = (each["run"], each["object"]), each["latest"]
            if latest is not None:
                before = furthest.get(register)
                if before is None or latest["upper"] > before["upper"]:
                    furthest[register] = latest
    return {
        number: pa.Table.from_pylist(rows, HANDED_ON) for number, rows in carried.items() if rows
    }
