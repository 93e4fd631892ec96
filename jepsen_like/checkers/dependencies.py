"""Which operation on logs depends on which: the edges in which cycles are sought.

    ww        one wrote a record, the other the next one of the same key
    wr        one wrote what the other read
    process   one came before the other in the same process
    realtime  one had ended before the other began

Writers are those that are known to have written: acknowledged, or read by somebody. Real time is a
chain of moments, one at the end of each operation: so there are few edges, not one for each pair.
Source: Adya's dependencies as in Elle and Jepsen's kafka workload, where offsets order versions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from jepsen_like.checkers.cycles import Graph
from jepsen_like.checkers.log_columns import FAIL, UNKNOWN, Column, LogColumns
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.pairing import first_rows
from jepsen_like.checkers.reporting import place

__all__ = ["Dependencies", "Kind"]


class Kind(IntEnum):
    WW = 0
    WR = 1
    PROCESS = 2
    REALTIME = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dependencies:
    operations: Sequence[Operation]  # one a node; what nodes are more are moments
    source: Column  # nodes
    target: Column
    kind: Column
    key: Column  # of ww and wr; else UNKNOWN
    value: Column  # that the source wrote; else UNKNOWN

    @classmethod
    def of(cls, log: LogColumns, operations: Sequence[Operation]) -> "Dependencies":
        nodes = [each for each in operations if each.f in ("send", "poll", "txn")]
        places = np.array([place(each) for each in nodes], dtype=np.int64)
        order = np.argsort(places)
        places = places[order]

        def node(of: Column) -> Column:
            return order[np.searchsorted(places, of)]

        edges = [
            _edges(Kind.WW, *_writes(log, node)),
            _edges(Kind.WR, *_reads(log, node)),
            _edges(Kind.PROCESS, *_in_processes(nodes)),
            _edges(Kind.REALTIME, *_in_time(nodes)),
        ]
        source, target, kind, key, value = (
            np.concatenate([part[at] for part in edges]) for at in range(5)
        )
        return cls(operations=nodes, source=source, target=target, kind=kind, key=key, value=value)

    def only(self, kinds: Sequence[Kind]) -> tuple[Graph, Column]:
        """The graph of these, and which edges they are."""
        edges = np.flatnonzero(np.isin(self.kind, kinds) & (self.source != self.target))
        return Graph(source=self.source[edges], target=self.target[edges]), edges


_Edges = tuple[Column, Column, Column, Column]  # source, target, key, value


def _writers(log: LogColumns) -> tuple[Column, Column]:
    """Finds for each read and each offset the row of the send that wrote it, else UNKNOWN."""
    sends = log.sends
    able = np.flatnonzero(sends.kind != FAIL)
    first = first_rows(log.by_value.sends[able], log.by_value.size)[log.by_value.reads]
    of_reads = np.where(first >= 0, able[first] if len(able) else UNKNOWN, UNKNOWN)
    of_offsets = np.full(log.by_offset.size, UNKNOWN)
    of_offsets[log.by_offset.reads] = of_reads
    told = np.flatnonzero(log.is_told)
    of_offsets[log.by_offset.sends[told]] = told
    return of_reads, of_offsets


def _writes(log: LogColumns, node: Callable[[Column], Column]) -> _Edges:
    """Offsets have numbers in their order, those of one key one after the other."""
    sends, (_, writers) = log.sends, _writers(log)
    is_seen = np.zeros(log.by_offset.size, dtype=bool)
    is_seen[log.by_offset.reads] = True
    is_seen[log.by_offset.sends[log.is_told]] = True
    row = writers[np.flatnonzero(is_seen)]
    before, after = row[:-1], row[1:]
    known = (before >= 0) & (after >= 0)
    before, after = before[known], after[known]
    same = sends.key[before] == sends.key[after]
    before, after = before[same], after[same]
    return (
        node(sends.operation[before]),
        node(sends.operation[after]),
        sends.key[before],
        sends.value[before],
    )


def _reads(log: LogColumns, node: Callable[[Column], Column]) -> _Edges:
    writers, _ = _writers(log)
    read = np.flatnonzero(writers >= 0)
    sent = writers[read]
    return (
        node(log.sends.operation[sent]),
        node(log.reads.operation[read]),
        log.sends.key[sent],
        log.sends.value[sent],
    )


def _in_processes(nodes: Sequence[Operation]) -> _Edges:
    last: dict[int | str, int] = {}
    pairs = []
    for number, operation in enumerate(nodes):
        if operation.process in last:
            pairs.append((last[operation.process], number))
        last[operation.process] = number
    return _plain(np.array(pairs, dtype=np.int64).reshape(len(pairs), 2).T)


def _in_time(nodes: Sequence[Operation]) -> _Edges:
    """Through moments, which are nodes behind all operations."""
    calls = np.array([each.call for each in nodes], dtype=np.int64)
    rets = np.array([each.ret for each in nodes], dtype=np.int64)
    ended = np.flatnonzero(rets < NEVER)
    ended = ended[np.argsort(rets[ended], kind="stable")]
    moments = len(nodes) + np.arange(len(ended))
    before = np.searchsorted(rets[ended], calls) - 1
    begun = np.flatnonzero(before >= 0)
    ends = np.stack([ended, moments])
    follows = np.stack([moments[:-1], moments[1:]])
    begins = np.stack([moments[before[begun]], begun])
    return _plain(np.concatenate([ends, follows, begins], axis=1))


def _plain(pairs: Column) -> _Edges:
    none = np.full(pairs.shape[1], UNKNOWN)
    return pairs[0], pairs[1], none, none


def _edges(kind: Kind, source: Column, target: Column, key: Column, value: Column) -> list[Column]:
    return [source, target, np.full(len(source), int(kind)), key, value]
