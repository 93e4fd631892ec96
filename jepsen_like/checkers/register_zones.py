"""Registers whose values are written once, judged by zones; and the order of stale reads.

The search for clashing zones is `zones`; here the histories become its columns, and its pairs
become findings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.register_accesses import Register, never_written
from jepsen_like.checkers.reporting import Told, report
from jepsen_like.checkers.zones import Accesses, Clusters, clashes
from jepsen_like.history import Value
from jepsen_like.verdict import Finding, Verdict

__all__ = ["check_zones", "went_back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    registers: Sequence[Register]
    operations: Sequence[Operation]  # one a row
    values: Sequence[dict[Value, int]]  # of each register
    accesses: Accesses
    clusters: Clusters

    def name(self, cluster: int) -> str:
        return self.registers[int(self.clusters.key[cluster])].key

    def value(self, cluster: int) -> Value:
        code = int(self.clusters.value[cluster])
        values = self.values[int(self.clusters.key[cluster])]
        return next((value for value, each in values.items() if each == code), None)

    def evidence(self, *rows: int) -> tuple[int, ...]:
        """Of row -1, the initial value, there is none."""
        found = {index for row in rows if row >= 0 for index in self.operations[row].evidence}
        return tuple(sorted(found))


def check_zones(registers: Sequence[Register]) -> Verdict:
    columns = _columns(registers)
    findings = _clashing(columns)
    for number, register in enumerate(registers):
        findings += never_written(register)
        findings += _read_early(register)
        findings += went_back(register, _zones_of(columns, number))
    return Verdict.of(findings, objects=[register.key for register in registers])


def _columns(registers: Sequence[Register]) -> _Columns:
    operations: list[Operation] = []
    values: list[dict[Value, int]] = []
    rows: list[tuple[int, int, int, int]] = []
    for number, register in enumerate(registers):
        codes: dict[Value, int] = {None: -1}
        for each in register.accesses:
            value = each.result if each.f == "read" else each.argument
            rows.append((number, codes.setdefault(value, len(codes)), each.call, each.ret))
            operations.append(each)
        values.append(codes)
    matrix = np.array(rows, dtype=np.int64).reshape(len(rows), 4)
    accesses = Accesses(key=matrix[:, 0], value=matrix[:, 1], call=matrix[:, 2], ret=matrix[:, 3])
    return _Columns(
        registers=registers,
        operations=operations,
        values=values,
        accesses=accesses,
        clusters=Clusters.of(accesses),
    )


def _read_early(register: Register) -> Iterator[Finding]:
    writers = {each.argument: each for each in register.changes}
    for read in register.reads:
        writer = writers.get(read.result)
        if writer is not None and read.ret < writer.call:
            yield Finding(
                rule="not-linearizable",
                object=register.key,
                detail=f"{read.result!r} was read before it was written",
                ops=(*read.evidence, *writer.evidence),
            )


def _clashing(columns: _Columns) -> list[Finding]:
    one, other = clashes(columns.clusters)
    clusters = columns.clusters

    def tell(at: int) -> Told:
        holds, comes = int(one[at]), int(other[at])
        bounds = [clusters.first_by, clusters.last_by]
        evidence = columns.evidence(*(int(by[each]) for each in (holds, comes) for by in bounds))
        detail = (
            f"{columns.value(holds)!r} was there before and after, "
            f"and {columns.value(comes)!r} in between"
        )
        return detail, evidence

    return report("not-linearizable", range(len(one)), lambda at: columns.name(int(one[at])), tell)


_Zones = dict[Value, tuple[int, int]]  # of a value: first return, last call


def _zones_of(columns: _Columns, number: int) -> _Zones:
    clusters = columns.clusters
    mine = np.flatnonzero(clusters.key == number)
    bounds = {
        int(clusters.value[at]): (int(clusters.first[at]), int(clusters.last[at])) for at in mine
    }
    return {value: bounds[code] for value, code in columns.values[number].items() if code in bounds}


def went_back(register: Register, zones: _Zones) -> Iterator[Finding]:
    """Stale reads of one process at one node, of a value and then of an earlier one.

    Of two values the one that was there when some operation ended came before the other, if an
    operation on the other began later. A value that was left does not come back.
    """
    last: dict[Value, list[Operation]] = {}
    for read in register.stale:
        seen = last.setdefault((read.process, read.extra.get("node")), [])
        older = next((each for each in seen if _is_before(read, each, zones)), None)
        is_back = any(each.result == read.result for each in seen[:-1])
        if older is None and is_back:
            older = seen[-1]
        if older is not None and older.result != read.result:
            yield Finding(
                rule="nonmonotonic-read",
                object=register.key,
                detail=f"{older.result!r} was read, and later the older {read.result!r}",
                ops=(*older.evidence, *read.evidence),
            )
        if not seen or seen[-1].result != read.result:
            seen.append(read)


def _is_before(read: Operation, other: Operation, zones: _Zones) -> bool:
    """The value of `read` surely was there before that of `other`."""
    if read.result == other.result:
        return False
    none = (0, 0)
    return zones.get(read.result, none)[0] < zones.get(other.result, none)[1]
