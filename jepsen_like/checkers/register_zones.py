"""Registers whose values are written once, judged by chains and zones; the order of stale reads.

Two things must hold of a chain of values. Its changes and reads fit together, each before the next:
a change is the moment at which its place in the chain comes (`zones.Bounds`). And no other chain
must hold while it must (`zones`). Together they are exact. Here histories become columns for them,
and what they find becomes findings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.pairing import Column
from jepsen_like.checkers.register_accesses import (
    Chains,
    Register,
    chains_of,
    never_written,
    new_value,
)
from jepsen_like.checkers.verdict import Finding, Told, Verdict, report
from jepsen_like.checkers.zones import Accesses, Bounds, Clusters, clashes
from jepsen_like.histories.history import Value

__all__ = ["check_zones"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """One row an access."""

    registers: Sequence[Register]
    chains: Sequence[Chains]  # of each register
    operations: Sequence[Operation]
    values: Sequence[Value]
    place: Column  # that of the value in its chain
    by_value: Accesses
    by_chain: Accesses  # the value of an access is the first of its chain

    @property
    def names(self) -> list[str]:
        return [register.key for register in self.registers]

    def shown(self, *rows: int) -> list[Operation]:
        """These accesses, and the changes between those of one chain."""
        found = [self.operations[row] for row in rows]
        spans: dict[tuple[int, Value], list[int]] = {}
        for row in rows:
            number = int(self.by_chain.key[row])
            root = self.chains[number].root(self.values[row])
            spans.setdefault((number, root), []).append(int(self.place[row]))
        for (number, root), places in spans.items():
            links = self.chains[number].links
            found += [links[root, place] for place in range(min(places) + 1, max(places) + 1)]
        return found


def check_zones(registers: Sequence[Register]) -> Verdict:
    """Judges registers that `happened` made."""
    columns = _columns(registers)
    findings = [*_out_of_order(columns), *_clashing(columns)]
    for number, register in enumerate(registers):
        findings += list(never_written(register)) or columns.chains[number].broken
        findings += went_back(register, _zones_of(columns, number))
    return Verdict.of(findings, objects=[register.key for register in registers])


def _columns(registers: Sequence[Register]) -> _Columns:
    chains = [chains_of(register) for register in registers]
    operations: list[Operation] = []
    values: list[Value] = []
    rows: list[tuple[int, int, int, int, int, int]] = []
    for number, (register, of) in enumerate(zip(registers, chains, strict=True)):
        codes: dict[Value, int] = {None: -1}
        for each in register.accesses:
            value = each.result if each.f == "read" else new_value(each)
            code = codes.setdefault(value, len(codes))
            first = codes.setdefault(of.root(value), len(codes))
            rows.append((number, code, first, of.place(value), each.call, each.ret))
            operations.append(each)
            values.append(value)
    matrix = np.array(rows, dtype=np.int64).reshape(len(rows), 6)
    key, own, root, place, call, ret = (np.ascontiguousarray(matrix[:, at]) for at in range(6))
    return _Columns(
        registers=registers,
        chains=chains,
        operations=operations,
        values=values,
        place=place,
        by_value=Accesses(key=key, value=own, call=call, ret=ret),
        by_chain=Accesses(key=key, value=root, call=call, ret=ret),
    )


def _out_of_order(columns: _Columns) -> list[Finding]:
    """Reads before their writes, and chains whose changes do not fit together."""
    accesses, row = columns.by_chain, np.arange(len(columns.values), dtype=np.int64)
    chain = Clusters.of(accesses).cluster
    is_read = np.array([each.f == "read" for each in columns.operations], dtype=np.int64)
    bounds = Bounds.of(
        lower=(chain, columns.place + is_read, accesses.call, row),
        upper=(chain, columns.place, accesses.ret, row),
    )
    late, forbidden_by = bounds.broken()

    def tell(at: int) -> Told:
        ended, began = int(bounds.upper_by[late[at]]), int(bounds.lower_by[forbidden_by[at]])
        one, other = columns.operations[ended], columns.operations[began]
        if columns.values[ended] == columns.values[began]:
            detail = f"{columns.values[ended]!r} was {_told(one)} before it was {_told(other)}"
        else:
            detail = (
                f"{columns.values[ended]!r} was {_told(one)} before {columns.values[began]!r} was "
                f"{_told(other)}, of which it was made"
            )
        return detail, columns.shown(ended, began)

    keys = accesses.key[bounds.upper_by[late]]
    return report("not-linearizable", columns.names, keys, tell)


def _told(operation: Operation) -> str:
    return "read" if operation.f == "read" else "written"


def _clashing(columns: _Columns) -> list[Finding]:
    clusters = Clusters.of(columns.by_chain)
    one, other = clashes(clusters)
    bounds = clusters.first_by, clusters.last_by

    def rows(cluster: int) -> list[int]:
        """The initial value has no first one."""
        return [int(by[cluster]) for by in bounds if by[cluster] >= 0]

    def told(cluster: int) -> str:
        return " to ".join(dict.fromkeys(repr(columns.values[row]) for row in rows(cluster)))

    def tell(at: int) -> Told:
        holds, comes = int(one[at]), int(other[at])
        detail = f"{told(holds)} was there before and after, and {told(comes)} in between"
        return detail, columns.shown(*rows(holds), *rows(comes))

    return report("not-linearizable", columns.names, clusters.key[one], tell)


_Zones = dict[Value, tuple[int, int]]  # of a value: first return, last call


def _zones_of(columns: _Columns, number: int) -> _Zones:
    if not columns.registers[number].stale:
        return {}
    clusters = Clusters.of(columns.by_value)
    mine = np.flatnonzero(columns.by_value.key == number).tolist()
    of = clusters.cluster.tolist()
    return {
        columns.values[row]: (int(clusters.first[of[row]]), int(clusters.last[of[row]]))
        for row in mine
    }


def went_back(register: Register, zones: _Zones) -> Iterator[Finding]:
    """Stale reads of one process at one node, of a value and then of an earlier one.

    Of two values the one that was there when some operation ended came before the other, if an
    operation on the other began later. A value that was left does not come back.
    """
    last: dict[Value, list[Operation]] = {}
    for read in (each for each in register.stale if each.extra.get("node") is not None):
        seen = last.setdefault((read.process, read.extra["node"]), [])
        older = next((each for each in seen if _is_before(read, each, zones)), None)
        is_back = any(each.result == read.result for each in seen[:-1])
        if older is None and is_back:
            older = seen[-1]
        if older is not None and older.result != read.result:
            detail = f"{older.result!r} was read, and later the older {read.result!r}"
            yield Finding.of("nonmonotonic-read", register.key, detail, older, read)
        if not seen or seen[-1].result != read.result:
            seen.append(read)


def _is_before(read: Operation, other: Operation, zones: _Zones) -> bool:
    """The value of `read` surely was there before that of `other`."""
    if read.result == other.result:
        return False
    none = (0, 0)
    return zones.get(read.result, none)[0] < zones.get(other.result, none)[1]
