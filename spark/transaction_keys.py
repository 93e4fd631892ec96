"""What is done with the keys of transactions that are too large for one worker.

    operations --split by key--> projections: what each did to one key
        --by key--> findings, and transactions that are not acknowledged, but were read
        --by key--> edges: which transaction came before which

Each key is judged alone. Anomalies that need several keys are cycles, found from the edges. All of
a key must fit into one worker. Which of the transactions that are not acknowledged took place is
known when all keys were judged. Of a run in which a key cannot be judged nothing more is asked.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import pyarrow as pa

from jepsen_like.checkers.isolation_levels import STRICT
from jepsen_like.checkers.micro_operations import WRITE_OF, transactions_of
from jepsen_like.checkers.operations import Operation, exact
from jepsen_like.histories.history import Kind, Value
from spark.columns import operation_of
from spark.judging import Batches, limited_memory
from spark.one_key import JUDGES, RecordedEdges
from spark.pieces import Mapped
from spark.transaction_rows import KeyFindings, Projection, Rows, packed, table_of, unpacked

__all__ = ["OPERATIONS", "KeyJudge", "nodes_and_counts", "split_by_key"]

OPERATIONS = [
    *("run", "what", "process", "f", "kind", "call", "ret", "invoked", "completed"),
    *("number", "value", "argument", "result", "extra"),
]

Row = dict[str, Any]
Confirmed = Mapping[str, AbstractSet[int]]  # calls of what was not acknowledged; runs to judge
_IN_BATCH = 10_000


def nodes_and_counts(confirmed: Confirmed) -> Mapped:
    """In one pass: the transactions that have taken place, and how many there are of all."""

    def judge(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in filter(len, batches):
            rows = batch.to_pylist()
            yield from _batches(_node(row) for row in rows if _is_there(row, confirmed))
            yield from _batches(_counts(rows))

    return judge


def _is_there(row: Row, confirmed: Confirmed) -> bool:
    calls = confirmed.get(row["run"])
    return calls is not None and (row["kind"] == Kind.OK.value or row["call"] in calls)


def _counts(rows: Iterable[Row]) -> Iterator[Row]:
    for run, count in Counter(row["run"] for row in rows).items():
        yield {"tag": "count", "run": run, "source_call": 0, "count": count}


def _node(row: Row) -> Row:
    bare = operation_of({**row, "argument": None, "result": None, "extra": None}, keyed=False)
    call, ret = row["call"], row["ret"]
    times = {"source": call, "source_call": call, "ret": ret}
    return {"tag": "node", "run": row["run"], **times, "body": packed(bare)}


def _batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    left = iter(rows)
    while some := list(islice(left, _IN_BATCH)):
        yield from table_of(some).to_batches()


def split_by_key(workload: str) -> Mapped:
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
class KeyJudge:
    """Goes to the workers. Pieces are sorted by run and key."""

    workload: str
    level: str
    mb: int

    def judged(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """What is wrong, one row a run."""
        with limited_memory(self.mb):
            for run, of_run in groupby(Rows(batches), itemgetter("run")):
                findings = KeyFindings()
                for name, of_key in groupby(of_run, itemgetter("key")):
                    self._judge_key(name, of_key, findings)
                yield from _batches([{"tag": "keys", "run": run, "body": packed(findings)}])

    def _judge_key(self, name: str | None, rows: Iterable[Row], findings: KeyFindings) -> None:
        if name is None:  # malformed
            findings.doubts.append(min(row["body"].decode() for row in rows))
            return
        try:
            key = JUDGES[self.workload](_projections_of(rows))
            if key.doubt is not None:
                findings.doubts.append(key.doubt)
                return
            findings.found.add(key.findings)
            findings.lost_updates.add(key.lost_updates())
        except MemoryError:
            findings.doubts.append(self._too_large(name))
            return
        findings.reads += key.reads
        findings.confirmed += [
            each.operation.call for each in key.seen() if each.operation.kind is not Kind.OK
        ]

    def _too_large(self, name: str) -> str:
        return f"key {name} alone needs more than the {self.mb} MB of a worker"

    def edges(self, confirmed: Confirmed) -> Mapped:
        """Edges between those that have taken place, and a register's guessed ones."""

        def judge(batches: Batches) -> Iterator[pa.RecordBatch]:
            with limited_memory(self.mb):
                yield from _batches(
                    {"run": run, **edge}
                    for run, of_run in groupby(Rows(batches), itemgetter("run"))
                    if run in confirmed
                    for name, of_key in groupby(of_run, itemgetter("key"))
                    for edge in self._edges(name, of_key, confirmed[run])
                )

        return judge

    def _edges(self, name: str, rows: Iterable[Row], confirmed: AbstractSet[int]) -> Iterator[Row]:
        try:
            recorded, guesses = self._recorded(rows, confirmed)
        except MemoryError:
            yield {"tag": "doubt", "source_call": 0, "body": self._too_large(name).encode()}
            return
        for row in recorded.rows():
            yield {"tag": "edge", **row}
        for one, other in guesses:
            at = {"source": one, "source_call": one, "target": other, "target_call": other}
            yield {"tag": "guess", **at}

    def _recorded(
        self, rows: Iterable[Row], confirmed: AbstractSet[int]
    ) -> tuple[RecordedEdges, list[tuple[int, int]]]:
        key = JUDGES[self.workload](_projections_of(rows))
        node_of = {
            each: each.operation.call
            for each in key.transactions
            if each.operation.kind is Kind.OK or each.operation.call in confirmed
        }
        recorded = RecordedEdges(key.first)
        key.enter(recorded, node_of, is_strict=self.level == STRICT)
        return recorded, list(key.likely(node_of))


def _projections_of(rows: Iterable[Row]) -> list[Projection]:
    told = [unpacked(row["body"], Projection) for row in rows]
    return sorted(told, key=lambda each: each.operation.call)
