"""What is done with the keys of transactions that are too large for one worker.

    operations --apart--> what each did to one key
        --by key--> what is wrong with a key, and which transactions of unknown end are read
        --by key--> edges: which transaction came before which

A key is judged as if there were no other: what spans several is in the edges. All of it must fit
into one worker. Which transactions of unknown end took place is known when all keys were looked at.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any

import pyarrow as pa

from jepsen_like.checkers.isolation_levels import STRICT
from jepsen_like.checkers.micro_operations import WRITE_OF, transactions_of
from jepsen_like.checkers.operations import Operation, exact
from jepsen_like.histories.history import Kind, Value
from spark.columns import operation_of
from spark.judging import Batches, limited_memory
from spark.one_key import JUDGES, RecordedEdges
from spark.transaction_rows import KeyFindings, Projection, packed, table_of, unpacked

__all__ = ["OPERATIONS", "Keys", "apart", "nodes"]

OPERATIONS = [
    *("run", "what", "process", "f", "kind", "call", "ret", "invoked", "completed"),
    *("number", "value", "argument", "result", "extra"),
]

Row = dict[str, Any]
Seen = Mapping[str, AbstractSet[int]]  # by run
_IN_BATCH = 10_000


def nodes(seen: Seen) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """The transactions that have taken place, and how many there are of all."""

    def judge(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in filter(len, batches):
            rows = batch.to_pylist()
            yield from _batches(_node(row, seen) for row in rows if _is_there(row, seen))
            for run in {row["run"] for row in rows}:
                number = sum(row["run"] == run for row in rows)
                yield from _batches(
                    [{"tag": "count", "run": run, "source_call": 0, "count": number}]
                )

    return judge


def _is_there(row: Row, seen: Seen) -> bool:
    return row["kind"] == Kind.OK.value or row["call"] in seen.get(row["run"], ())


def _node(row: Row, seen: Seen) -> Row:
    bare = operation_of({**row, "argument": None, "result": None, "extra": None}, keyed=False)
    call, ret = row["call"], row["ret"]
    times = {"source": call, "source_call": call, "ret": ret}
    return {"tag": "node", "run": row["run"], **times, "body": packed(bare)}


def _batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    left = iter(rows)
    while some := list(islice(left, _IN_BATCH)):
        yield from table_of(some).to_batches()


def apart(workload: str) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def judge(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in filter(len, batches):
            yield from _batches(
                {"run": row["run"], **each}
                for row in batch.to_pylist()
                for each in _projections(row, WRITE_OF[workload])
            )

    return judge


def _projections(row: Row, write: str) -> list[Row]:
    """A row a key; or one that says why the transaction makes no sense, of no key."""
    try:
        operation = operation_of(row, keyed=False)
        transactions_of([operation], write)
    except ValueError as error:  # also MalformedHistory
        return [{"tag": "malformed", "body": f"it makes no sense: {error}".encode()}]
    has_read = operation.kind is Kind.OK and operation.result is not None
    steps = operation.result if has_read else operation.argument
    of_keys: dict[str, list[tuple[int, Value]]] = {}
    for place, step in enumerate(steps):
        of_keys.setdefault(repr(exact(step[1])), []).append((place, step))
    bare = replace(operation, argument=[], result=None, extra={})
    return [
        {
            "tag": "projection",
            "key": key,
            "body": packed(_projection(bare, mine, write, has_read=has_read)),
        }
        for key, mine in of_keys.items()
    ]


def _projection(
    bare: Operation, mine: list[tuple[int, Value]], write: str, *, has_read: bool
) -> Projection:
    steps = [step for _, step in mine]
    done = replace(bare, result=steps) if has_read else replace(bare, argument=steps)
    written = next((place for place, step in mine if step[0] == write), None)
    return Projection(operation=done, written=written)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Goes to the workers. Pieces are sorted by run and key."""

    workload: str
    level: str
    mb: int

    def judged(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """What is wrong, one row a run."""
        rows = (row for batch in batches for row in batch.to_pylist())
        with limited_memory(self.mb):
            for run, of_run in groupby(rows, lambda row: row["run"]):
                told = KeyFindings()
                for key, of_key in groupby(of_run, lambda row: row["key"]):
                    self._look_at(key, of_key, told)
                yield from _batches([{"tag": "keys", "run": run, "body": packed(told)}])

    def _look_at(self, key: str | None, rows: Iterable[Row], told: KeyFindings) -> None:
        if key is None:
            told.doubts.append(min(row["body"].decode() for row in rows))
            return
        try:
            of = JUDGES[self.workload](_projections_of(rows))
            if of.doubt is not None:
                told.doubts.append(of.doubt)
                return
            told.found.add(of.findings)
            told.lost_updates.add(of.lost_updates())
        except MemoryError:
            told.doubts.append(f"key {key} alone needs more than the {self.mb} MB of a worker")
            return
        told.reads += of.reads
        told.confirmed += [
            each.operation.call for each in of.seen() if each.operation.kind is not Kind.OK
        ]

    def edges(self, seen: Seen) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        """Of those that have taken place; and, of registers, in what order they may have."""

        def judge(batches: Batches) -> Iterator[pa.RecordBatch]:
            rows = (row for batch in batches for row in batch.to_pylist())
            keys = groupby(rows, lambda row: (row["run"], row["key"]))
            with limited_memory(self.mb):
                yield from _batches(
                    edge
                    for (run, key), mine in keys
                    if key is not None
                    for edge in self._edges(run, mine, seen.get(run, frozenset()))
                )

        return judge

    def _edges(self, run: str, rows: Iterable[Row], seen: AbstractSet[int]) -> Iterator[Row]:
        of = JUDGES[self.workload](_projections_of(rows))
        if of.doubt is not None:
            return
        number = {
            each: each.operation.call
            for each in of.transactions
            if each.operation.kind is Kind.OK or each.operation.call in seen
        }
        recorded = RecordedEdges(of.first)
        of.enter(recorded, number, is_strict=self.level == STRICT)
        for row in recorded.rows():
            yield {"tag": "edge", "run": run, **row}
        for one, other in of.likely(number):
            at = {"source": one, "source_call": one, "target": other, "target_call": other}
            yield {"tag": "guess", "run": run, **at}


def _projections_of(rows: Iterable[Row]) -> list[Projection]:
    told = [unpacked(row["body"], Projection) for row in rows]
    return sorted(told, key=lambda each: each.operation.call)
