"""What is done with a piece of a queue that is too large for one worker.

A piece of some values each finds what is wrong with one of them, and hands on when each came and
left. What is wrong between values is found along the time, see `queue_columns`: a piece of moments
is judged with what is carried on to it, which is exact.

    order   each value asks, at the moment at which its enqueue ended, which of all that came later
            was gone first: of the pieces behind, one value says so
    empty   a dequeue that found nothing asks, when it ended, since when some value was there
            without a gap, and until when: of the pieces before, one span says so

    tag       a row for
    value     a value that came: `began`, `came` of its enqueue, `left`, `gone` of its dequeue
    unknown   a dequeue of unknown end: `moment` of its call
    empty     a dequeue that found nothing: `began`, `came` of itself; its place is `enqueue`
    due       a value that had to leave by the `moment`, and was not seen to; as a finding: `told`
    taken     one that a dequeue of unknown end may have taken, when it `left`
    end       the value of a piece that left last; `began`: since when without a gap
    carried   the same of all pieces before; `came`: since when, `began`: when it came itself
    twice     an object: one of its values was enqueued twice
    wrong     an object: it was found empty, and something was there
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jepsen_like.checkers.log_columns import FAIL, OK
from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.pairing import Column, Mask
from jepsen_like.checkers.queue_columns import (
    NOTHING,
    QueueColumns,
    QueueEnds,
    QueueOrder,
    Spans,
    taken_at,
)
from jepsen_like.checkers.queues import never_enqueued, pair_of, pairs_of, values_of
from jepsen_like.checkers.verdict import Finding, Told, Verdict, report
from spark.columns import Chosen, numbers, objects, queue_columns, values
from spark.pieces import Mapped, names_of, whole
from spark.verdicts import encoded

__all__ = [
    "ACCESSES",
    "QUEUED",
    "by_deadline",
    "by_value",
    "carried_back",
    "carried_spans",
    "covered",
    "ends",
    "matched",
]

ACCESSES = [
    *("run", "object", "f", "kind", "call", "ret", "invoked", "completed", "number", "value"),
]
_MOMENTS = ("began", "came", "left", "gone")
_NUMBERS = ("number", "piece", "moment", *_MOMENTS, "enqueue", "dequeue")
_TEXTS = ("tag", "run", "object", "verdict")
QUEUED = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in _TEXTS),
        *(pa.field(name, pa.int64()) for name in _NUMBERS),
        *(pa.field(name, pa.binary()) for name in ("value", "told")),
    ]
)
Rows = Sequence[Mapping[str, Any]]


def by_value(mb: int) -> Mapped:
    """Pieces of some values each, in any order: enqueues, and dequeues that took one."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        columns = queue_columns(rows)
        able = columns.enqueues.kind != FAIL
        counts = np.bincount(columns.enqueues.value[able], minlength=len(columns.values))
        once = counts <= 1
        yield _filled("twice", names_of(columns.keys, np.flatnonzero(columns.is_repeated)))
        alone = replace(
            columns,
            enqueues=_only(columns.enqueues, once[columns.enqueues.value]),
            dequeues=_only(columns.dequeues, once[columns.dequeues.value]),
        )
        yield from _verdict([*values_of(alone), *never_enqueued(alone)])
        taken = alone.taken
        is_there = (taken.enqueue_ret < NEVER) | (taken.dequeue != NOTHING)
        yield _values("value", alone, np.flatnonzero(is_there & (taken.enqueue != NOTHING)))

    return whole(judge, mb)


def _only(ends: QueueEnds, mine: Mask) -> QueueEnds:
    return QueueEnds(**{each.name: getattr(ends, each.name)[mine] for each in fields(ends)})


def by_deadline(carried: Mapping[int, pa.Table], mb: int) -> Mapped:
    """Pieces of moments at which values began to come, or asked; what is carried back to which."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        columns, asks = _queue(_with(rows, carried))
        order = QueueOrder(columns)
        first, second = order.out_of_order()
        is_asked = asks[first]
        pairs = first[is_asked], second[is_asked]
        yield from _verdict(pairs_of(columns, "out-of-order", pairs))
        due, by, until = (each[asks[order.due()[0]]] for each in order.due())
        told = (
            msgspec.msgpack.encode(pair_of(columns, "lost-element", *pair))
            for pair in zip(due.tolist(), by.tolist(), strict=True)
        )
        yield _values("due", columns, due, moment=until, told=list(told))

    return whole(judge, mb)


def _queue(rows: pa.Table) -> tuple[QueueColumns, Mask]:
    """The values of these rows, each once; and whether they ask when they must have left."""
    names, key = objects(rows)
    found, code = values(rows)
    places, place = np.unique(numbers(rows, "enqueue"), return_inverse=True)
    _, first, at = np.unique(key * len(places) + place, return_index=True, return_inverse=True)
    asks = np.zeros(len(first), dtype=bool)
    asks[at[numbers(rows, "moment") == numbers(rows, "came")]] = True
    one = rows.take(pa.array(first))
    began, came, left, gone = (numbers(one, name) for name in _MOMENTS)
    dequeue, key = numbers(one, "dequeue"), key[first]
    every, is_taken = np.arange(len(first)), dequeue != NOTHING
    ok = np.full(len(first), OK)
    enqueues = QueueEnds(
        operation=numbers(one, "enqueue"), key=key, value=every, call=began, ret=came, kind=ok
    )
    dequeues = QueueEnds(operation=dequeue, key=key, value=every, call=left, ret=gone, kind=ok)
    columns = QueueColumns(
        keys=names,
        values=Chosen(found, code[first]),
        enqueues=enqueues,
        dequeues=_only(dequeues, is_taken),
    )
    return columns, asks


def matched(mb: int) -> Mapped:
    """All values of an object that were due, and its dequeues of unknown end."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        names, key = objects(rows)
        is_due = np.asarray(pc.equal(rows.column("tag"), "due"))
        moment, came = numbers(rows, "moment"), numbers(rows, "came")
        for at_key in range(len(names)):
            due = np.flatnonzero(is_due & (key == at_key))
            due = due[np.lexsort((came[due], moment[due]))]
            calls = np.sort(moment[~is_due & (key == at_key)])
            at = taken_at(moment[due], calls, np.arange(len(due)))
            lost = rows.column("told").take(pa.array(due[at == NOTHING]))
            yield from _verdict(_lost(names[at_key], lost))
            took = rows.take(pa.array(due[at != NOTHING]))
            columns = {name: took.column(name) for name in ("run", "object", "enqueue")}
            yield _filled("taken", columns | {"left": at[at != NOTHING]})

    return whole(judge, mb)


def _lost(name: str, told: pa.ChunkedArray) -> list[Finding]:
    def tell(at: int) -> Told:
        detail, shows = msgspec.msgpack.decode(told[at].as_py())
        return detail, shows

    return report("lost-element", [name], np.zeros(len(told), dtype=np.int64), tell)


def ends(mb: int) -> Mapped:
    """Pieces of spans that follow one another, by the moment at which they begin."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        spans = rows.filter(pc.equal(rows.column("tag"), "value")).select(QUEUED.names)
        spans = spans.sort_by("came")
        names, key = objects(spans)
        came, left = numbers(spans, "came"), numbers(spans, "left")
        for at_key in range(len(names)):
            mine = np.flatnonzero(key == at_key)
            latest = np.maximum.accumulate(left[mine])
            is_gap = np.append(True, came[mine][1:] > latest[:-1])
            last = spans.slice(int(mine[np.argmax(left[mine])]), 1)
            columns = {name: last.column(name) for name in QUEUED.names if name != "tag"}
            since = came[mine][np.flatnonzero(is_gap)[-1:]]
            yield _filled("end", columns | {"began": since, "piece": rows.column("piece")[:1]})

    return whole(judge, mb)


def covered(carried: Mapping[int, pa.Table], mb: int) -> Mapped:
    """The same pieces, with the dequeues that found nothing, by the moment at which they ended."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        rows = _with(rows, carried)
        names, key = objects(rows)
        found, code = values(rows)
        began, came, left = (numbers(rows, name) for name in ("began", "came", "left"))
        enqueue, dequeue = numbers(rows, "enqueue"), numbers(rows, "dequeue")
        tag = rows.column("tag")
        is_empty, is_carried = (np.asarray(pc.equal(tag, each)) for each in ("empty", "carried"))
        never = int(max(each[each < NEVER].max(initial=0) for each in (began, came, left))) + 1

        def moments(column: Column, of: Column) -> Column:
            lifted: Column = np.minimum(column, never)[of] + key[of] * (never + 1)
            return lifted

        there, empty = np.flatnonzero(~is_empty), np.flatnonzero(is_empty)
        spans = Spans.of(there, moments(came, there), moments(left, there))
        call, ret = moments(began, empty), moments(came, empty)
        wrong = np.flatnonzero(spans.cover(call, ret))

        def tell(at: int) -> Told:
            one = wrong[at]
            chain = spans.chain(int(call[one]), int(ret[one]))
            told = ", then ".join(repr(found[int(code[each])]) for each in chain)
            first = chain[0]
            if is_carried[first] and began[first] > began[empty[one]]:
                told = f"others, then {told}"
            places = [each[of] for of in (empty[one], *chain) for each in (enqueue, dequeue)]
            shows = [int(each) for each in places if each != NOTHING]
            return f"it was found empty, and {told} was there", shows

        of = key[empty[wrong]]
        yield from _verdict(report("wrongly-empty", names, of, tell))
        yield _filled("wrong", names_of(names, np.unique(of)))

    return whole(judge, mb)


def _with(rows: pa.Table, carried: Mapping[int, pa.Table]) -> pa.Table:
    carry = carried.get(rows.column("piece")[0].as_py())
    rows = rows.select(QUEUED.names)
    return rows if carry is None else pa.concat_tables([carry, rows.cast(QUEUED)])


def carried_back(earliest: Rows) -> dict[int, pa.Table]:
    """For each piece, of each object, the value of a later one that was gone first.

    `earliest` have that of each piece and object; None: there is none.
    """
    first: dict[tuple[str, str], Any] = {}
    carried = {}
    for piece in sorted({each["piece"] for each in earliest}, reverse=True):
        carried[piece] = pa.Table.from_pylist(list(first.values()), QUEUED)
        for each in earliest:
            value = each["earliest"]
            if each["piece"] == piece and value is not None:
                of = each["run"], each["object"]
                first[of] = min(first.get(of, value), value, key=lambda one: int(one["gone"]))
    return carried


def carried_spans(found: Rows, count: int) -> dict[int, pa.Table]:
    """For each of so many pieces, of each object, since when and until when some value was there
    without a gap. `found` are the ends of the pieces."""
    reached: dict[tuple[str, str], Mapping[str, Any]] = {}
    carried = {}
    for piece in range(count):
        carried[piece] = pa.Table.from_pylist(list(reached.values()), QUEUED)
        for each in (each for each in found if each["piece"] == piece):
            of = each["run"], each["object"]
            before = reached.get(of)
            mine = {**each, "tag": "carried", "came": each["began"], "began": each["came"]}
            if before is None or each["began"] > before["left"]:
                reached[of] = mine
            else:
                last = max(before, mine, key=lambda one: int(one["left"]))
                reached[of] = {**last, "came": before["came"]}
    return carried


def _values(tag: str, columns: QueueColumns, of: Column, **more: Any) -> pa.Table:
    taken = columns.taken
    assert isinstance(columns.values, Chosen)
    number, value = columns.values.columns(of)
    ends_ = (taken.enqueue, columns.enqueues), (taken.dequeue, columns.dequeues)
    enqueue, dequeue = (
        np.where(rows[of] == NOTHING, NOTHING, np.append(end.operation, NOTHING)[rows[of]])
        for rows, end in ends_
    )
    told = {
        **names_of(columns.keys, taken.key[of]),
        "number": number,
        "value": value,
        "began": taken.enqueue_call[of],
        "came": taken.enqueue_ret[of],
        "left": taken.dequeue_call[of],
        "gone": taken.dequeue_ret[of],
        "enqueue": enqueue,
        "dequeue": dequeue,
    }
    return _filled(tag, told | more)


def _filled(tag: str, columns: Mapping[str, Any]) -> pa.Table:
    """Rows with these columns; the rest is null."""
    count = len(next(iter(columns.values())))
    told = {"tag": pa.repeat(pa.scalar(tag), count), **columns}
    arrays = [
        _array(told[field.name], field.type) if field.name in told else pa.nulls(count, field.type)
        for field in QUEUED
    ]
    return pa.Table.from_arrays(arrays, schema=QUEUED)


def _array(column: Any, kind: pa.DataType) -> Any:
    if isinstance(column, pa.ChunkedArray | pa.Array):
        return column.cast(kind)
    return pa.array(column, kind)


def _verdict(findings: Iterable[Finding]) -> Iterator[pa.Table]:
    verdict = Verdict.of(findings)
    if verdict.findings:
        yield _filled("verdict", {"verdict": [encoded(verdict)]})
