"""Transactions on logs: no cycle of dependencies between operations.

    G1c    a cycle of operations, at least one of which read what another one wrote
    G0     a cycle of writes alone
    -process, -realtime: the cycle needs the order within a process, or that of real time

Kafka does not isolate the writes of transactions from each other: their records may be mixed. So
cycles through the order of writes (ww) are counted and allowed, unless the run's option
`isolated_writes` says that they are not. `int-send-skip` is counted, too: within one transaction a
key's sends do not lie next to each other, which nothing promises.

One cycle is told of each component, the shortest of those that were looked at.
Source: Jepsen's kafka workload; Elle.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from jepsen_like.checkers.cycles import Graph
from jepsen_like.checkers.dependencies import Dependencies, Kind
from jepsen_like.checkers.log_columns import Column, LogColumns
from jepsen_like.checkers.log_sessions import internal_send_skips
from jepsen_like.checkers.operations import Operation, lines_of
from jepsen_like.checkers.verdict import Finding, Verdict
from jepsen_like.histories.history import Value

__all__ = ["check_transactions"]

_SEEDS = 32  # edges of a component through which a cycle is sought
_SHOWN = 3  # cycles of one name
_ORDERS: Sequence[Sequence[Kind]] = ((), (Kind.PROCESS,), (Kind.REALTIME,))
_SUFFIX = {Kind.REALTIME: "-realtime", Kind.PROCESS: "-process"}


def check_transactions(
    log: LogColumns, operations: Sequence[Operation], options: Mapping[str, Value]
) -> Verdict:
    depends = Dependencies.of(log, operations)
    forbidden = list(_found(log, depends, (Kind.WR,)))
    through_writes = [*_found(log, depends, (Kind.WW,)), *_found(log, depends, (Kind.WW, Kind.WR))]
    known = {(cycle.rule, cycle.ops) for cycle in forbidden}
    through_writes = [cycle for cycle in through_writes if (cycle.rule, cycle.ops) not in known]
    counts = {"int-send-skip, allowed": len(internal_send_skips(log))}
    if options.get("isolated_writes", False):
        forbidden += through_writes
    else:
        counts["cycles through writes, allowed"] = len(through_writes)
    return Verdict.of(forbidden, counts)


def _found(log: LogColumns, depends: Dependencies, kinds: Sequence[Kind]) -> Iterator[Finding]:
    """Each name needs what the earlier ones do not: the last of its kinds."""
    shown: Counter[str] = Counter()
    told: set[tuple[int, ...]] = set()
    for order in _ORDERS:
        graph, edges = depends.only([*kinds, *order])
        for component in graph.components():
            cycle = _shortest(depends, graph, edges, component, kinds[-1])
            if cycle is None:
                continue
            finding = _finding(log, depends, edges[cycle])
            shown[finding.rule] += 1
            if shown[finding.rule] <= _SHOWN and finding.ops not in told:
                told.add(finding.ops)
                yield finding


def _shortest(
    depends: Dependencies, graph: Graph, edges: Column, component: Column, through: Kind
) -> list[int] | None:
    """None if there is no such edge in the component, which has another name then."""
    seeds = component[depends.kind[edges[component]] == through][:_SEEDS].tolist()
    return min((graph.cycle(component, seed) for seed in seeds), key=len, default=None)


def _finding(log: LogColumns, depends: Dependencies, cycle: Column) -> Finding:
    kinds = {Kind(int(kind)) for kind in depends.kind[cycle]}
    suffix = next((name for kind, name in _SUFFIX.items() if kind in kinds), "")
    nodes = [node for node in depends.source[cycle].tolist() if node < len(depends.operations)]
    return Finding(
        rule=("G1c" if Kind.WR in kinds else "G0") + suffix,
        object=log.keys[int(depends.key[cycle].max())],
        detail="; ".join(_steps(log, depends, cycle)),
        ops=lines_of(depends.operations[node] for node in nodes),
    )


def _steps(log: LogColumns, depends: Dependencies, cycle: Column) -> Iterator[str]:
    """An edge a step; of several moments in a row only the first, with the operation after them."""
    begun = None
    for edge in cycle.tolist():
        source, target = int(depends.source[edge]), int(depends.target[edge])
        begun = source if source < len(depends.operations) else begun
        if target >= len(depends.operations):
            continue
        assert begun is not None, "a cycle begins with an operation"
        one, other = (depends.operations[node].index for node in (begun, target))
        key, value = int(depends.key[edge]), int(depends.value[edge])
        match Kind(int(depends.kind[edge])):
            case Kind.WW:
                at = f"{log.values[value]!r} to {log.keys[key]}"
                yield f"{one} wrote {at}, and {other} what comes right after it"
            case Kind.WR:
                yield f"{one} wrote {log.values[value]!r} to {log.keys[key]}, which {other} read"
            case Kind.PROCESS:
                yield f"{one} came before {other} in its process"
            case Kind.REALTIME:
                yield f"{one} had ended when {other} began"
