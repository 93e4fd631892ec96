"""What is done with a piece of a queue that is too large for one worker.

A piece of some values each finds what is wrong with one of them, and hands on when each came and
left. What is wrong between values is found along the time, see `queue_columns`: a piece of moments
is judged with what is carried to it, which is exact.

Each value asks, at the moment at which its enqueue ended, which of all that came later was gone
first: of the pieces behind, one value says so, and is carried back. Dequeues that found nothing ask
in `queue_spans`.
"""

from collections.abc import Iterator, Mapping
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
    taken_at,
)
from jepsen_like.checkers.queues import never_enqueued, pair_of, pairs_of, values_of
from jepsen_like.checkers.verdict import Finding, Told, report
from spark.columns import Chosen, numbers, objects, queue_columns, values
from spark.pieces import Mapped, names_of, whole
from spark.queue_rows import MOMENTS, QUEUED, Rows, filled, verdict_of, with_carried

__all__ = ["by_deadline", "by_value", "carried_back", "matched"]


def by_value(mb: int) -> Mapped:
    """Pieces of some values each, in any order: enqueues, and dequeues that took one."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        columns = queue_columns(rows)
        able = columns.enqueues.kind != FAIL
        counts = np.bincount(columns.enqueues.value[able], minlength=len(columns.values))
        once = counts <= 1
        yield filled("twice", names_of(columns.keys, np.flatnonzero(columns.is_repeated)))
        alone = replace(
            columns,
            enqueues=_only(columns.enqueues, once[columns.enqueues.value]),
            dequeues=_only(columns.dequeues, once[columns.dequeues.value]),
        )
        yield from verdict_of([*values_of(alone), *never_enqueued(alone)])
        taken = alone.taken
        is_there = (taken.enqueue_ret < NEVER) | (taken.dequeue != NOTHING)
        yield _values("value", alone, np.flatnonzero(is_there & (taken.enqueue != NOTHING)))

    return whole(judge, mb)


def _only(ends: QueueEnds, mine: Mask) -> QueueEnds:
    return QueueEnds(**{each.name: getattr(ends, each.name)[mine] for each in fields(ends)})


def by_deadline(carried: Mapping[int, pa.Table], mb: int) -> Mapped:
    """Pieces of moments at which values began to come, or asked; what is carried back to which."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        columns, asks = _queue(with_carried(rows, carried))
        order = QueueOrder(columns)
        first, second = order.out_of_order()
        is_asked = asks[first]
        pairs = first[is_asked], second[is_asked]
        yield from verdict_of(pairs_of(columns, "out-of-order", pairs))
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
    began, came, left, gone = (numbers(one, name) for name in MOMENTS)
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
            yield from verdict_of(_lost(names[at_key], lost))
            took = rows.take(pa.array(due[at != NOTHING]))
            columns = {name: took.column(name) for name in ("run", "object", "enqueue")}
            yield filled("taken", columns | {"left": at[at != NOTHING]})

    return whole(judge, mb)


def _lost(name: str, told: pa.ChunkedArray) -> list[Finding]:
    def tell(at: int) -> Told:
        detail, shows = msgspec.msgpack.decode(told[at].as_py())
        return detail, shows

    return report("lost-element", [name], np.zeros(len(told), dtype=np.int64), tell)


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
    return filled(tag, told | more)
