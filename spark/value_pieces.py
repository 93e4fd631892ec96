"""What is done with a piece of a set, or of a total queue, that is too large for one worker.

What was done to a value goes to the piece of that value. A list of a set, and a drain of a queue,
goes to every piece, with no values in it but those of the piece. Values of one text share a piece,
so that 1 and "1" are told apart there.

    rows --cut--> PIECED --of_set--> what is wrong with an element; when elements came and went,
                                     where lists were open then, and all lists: `of_orders`
                  PIECED --of_queue--> the accounts of some values

Operations are packed. What makes no sense, or needs too much, is told instead of a verdict.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any
from zlib import crc32

import msgspec
import pyarrow as pa

from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.set_elements import Lists, lists_of
from jepsen_like.checkers.set_orders import Placed, check_orders
from jepsen_like.checkers.sets import check_elements
from jepsen_like.checkers.total_queues import Accounts, accounts_of
from jepsen_like.checkers.verdict import Verdict, compose
from jepsen_like.histories.history import Kind, Value
from spark.columns import operation_of
from spark.judging import Batches, limited_memory
from spark.verdicts import encoded

__all__ = ["OPERATIONS", "PIECED", "TOLD_OF_PIECES", "cut", "of_orders", "of_queue", "of_set"]

OPERATIONS = [
    *("run", "object", "what", "process", "f", "kind", "call", "ret", "invoked", "completed"),
    *("number", "value", "argument", "result", "extra"),
]
PIECED = pa.schema(
    [
        pa.field("run", pa.string()),
        pa.field("piece", pa.int64()),
        pa.field("call", pa.int64()),
        pa.field("done", pa.binary()),  # an operation
    ]
)
TOLD_OF_PIECES = pa.schema(
    [
        pa.field("run", pa.string()),
        pa.field("tag", pa.string()),  # verdict, accounts, list, placed, or nonsense: why
        pa.field("told", pa.binary()),
    ]
)
Told = tuple[str, bytes]
_OF_MANY = frozenset({"drain", "read", "read-stale"})
_ENCODER = msgspec.msgpack.Encoder()
_OPERATIONS = msgspec.msgpack.Decoder(Operation)
_PLACED = msgspec.msgpack.Decoder(Placed)


def cut(count: int, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Into so many pieces a run."""
    for batch in filter(len, batches):
        rows = [each for row in batch.to_pylist() for each in _apart(row, count)]
        yield from pa.Table.from_pylist(rows, PIECED).to_batches()


def _apart(row: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    each = operation_of(row, keyed=False)
    of = {"run": row["run"], "call": each.call}
    if each.f in _OF_MANY and each.kind is Kind.OK and isinstance(each.result, list):
        parts: list[list[Value]] = [[] for _ in range(count)]
        for value in each.result:
            parts[_piece(value, count)].append(value)
        for piece, mine in enumerate(parts):
            yield {**of, "piece": piece, "done": _encode(replace(each, result=mine))}
    else:
        value = each.result if each.f == "dequeue" else each.argument
        yield {**of, "piece": _piece(value, count), "done": _encode(each)}


def _piece(value: Value, count: int) -> int:
    return crc32(str(value).encode(errors="surrogatepass")) % count


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfPieces:
    """Goes to the workers. `judge` takes the operations of a piece, and whether it is the first."""

    judge: Callable[[Sequence[Operation], bool], Iterable[Told]]
    mb: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        with limited_memory(self.mb):
            for (run, piece), mine in groupby(rows, lambda row: (row["run"], row["piece"])):
                yield from _told(run, lambda: self._judged(mine, piece), self.mb)  # noqa: B023

    def _judged(self, rows: Iterable[dict[str, Any]], piece: int) -> list[Told]:
        done = sorted((_operation(row["done"]) for row in rows), key=lambda each: each.call)
        return list(self.judge(done, piece == 0))


def _told(run: str, judge: Callable[[], list[Told]], mb: int) -> Iterator[pa.RecordBatch]:
    try:
        told = judge()
    except MemoryError:
        why = f"it needs more than the {mb} MB that a worker may take"
        told = [("verdict", encoded(Verdict.undecided(why)).encode())]
    except ValueError as error:  # also MalformedHistory
        told = [("nonsense", f"it makes no sense: {error}".encode())]
    rows = [{"run": run, "tag": tag, "told": each} for tag, each in told]
    yield from pa.Table.from_pylist(rows, TOLD_OF_PIECES).to_batches()


def of_queue(mb: int) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def judge(done: Sequence[Operation], _: bool) -> Iterator[Told]:
        yield "accounts", _encode(accounts_of(done))

    return _OfPieces(judge=judge, mb=mb)


def of_set(budget: Budget, mb: int) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def judge(done: Sequence[Operation], is_first: bool) -> Iterator[Told]:
        lists = lists_of(done)
        current = Lists(lists)
        verdict, placed = check_elements(done, lists, current, budget)
        counts = {"lists": len(lists) if is_first else 0}
        yield "verdict", encoded(compose([Verdict.of([], counts), verdict])).encode()
        for each in placed:
            if each.touched or not each.is_sure:
                yield "placed", _encode(_lean(each, current))
        if is_first:
            for listing in lists:
                yield "list", _encode(_bare(listing))

    return _OfPieces(judge=judge, mb=mb)


def _lean(placed: Placed, lists: Lists) -> Placed:
    """With no list in it but those that matter, and nothing of what is in these."""
    wanted = {lists.by_call[at].index for at in placed.touched}
    seen = [
        _bare(each)
        for each in placed.element.seen
        if not placed.is_sure or each.f != "read" or each.index in wanted
    ]
    moments = [
        replace(each, first=_bare(each.first), last=_bare(each.last)) for each in placed.moments
    ]
    return replace(placed, element=replace(placed.element, seen=seen), moments=moments)


def _bare(operation: Operation) -> Operation:
    return replace(operation, result=None)


def of_orders(budget: Budget, mb: int) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Takes what all pieces of a set told, with the runs one after the other."""

    def judge(rows: Iterable[dict[str, Any]]) -> list[Told]:
        lists, placed = [], []
        for row in rows:
            if row["tag"] == "list":
                lists.append(_operation(row["told"]))
            else:
                placed.append(_placed(row["told"]))
        if not lists:  # there are none, or the piece that tells them is not judged
            return []
        lists.sort(key=lambda each: each.call)
        placed.sort(key=lambda each: each.element.name)
        orders = check_orders(placed, Lists(lists), budget)
        return [("verdict", encoded(orders).encode())]

    def judge_all(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        with limited_memory(mb):
            for run, mine in groupby(rows, lambda row: row["run"]):
                yield from _told(run, lambda: judge(mine), mb)  # noqa: B023

    return judge_all


# Functions that go to workers take these along by name; coders cannot go.


def _encode(told: Operation | Placed | Accounts) -> bytes:
    return _ENCODER.encode(told)


def _operation(told: bytes) -> Operation:
    return _OPERATIONS.decode(told)


def _placed(told: bytes) -> Placed:
    return _PLACED.decode(told)
