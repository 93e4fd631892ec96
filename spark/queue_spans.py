"""Since when something was in a queue that a dequeue found empty: pieces of moments.

A dequeue that found nothing asks, when it ended, since when some value was there without a gap, and
until when. Of the pieces before, one span says so: it is carried on.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.pairing import Column
from jepsen_like.checkers.queue_columns import NOTHING, Spans
from jepsen_like.checkers.verdict import Told, places, report
from spark.columns import numbers, objects, values
from spark.pieces import Mapped, names_of, whole
from spark.queue_rows import QUEUED, Rows, filled, verdict_of, with_carried

__all__ = ["asking", "carried_spans", "covered", "ends"]


def asking(tag: str, moment: str, mb: int) -> Mapped:
    """Dequeues of which no value is known, as rows that ask at their `moment`, call or ret."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        told = {"run": "run", "object": "object", "moment": moment, "began": "call", "came": "ret"}
        place = places(numbers(rows, "invoked"), numbers(rows, "completed"))
        yield filled(tag, {to: rows.column(of) for to, of in told.items()} | {"enqueue": place})

    return whole(judge, mb)


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
            yield filled("end", columns | {"began": since, "piece": rows.column("piece")[:1]})

    return whole(judge, mb)


def covered(carried: Mapping[int, pa.Table], mb: int) -> Mapped:
    """The same pieces, with the dequeues that found nothing, by the moment at which they ended."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        rows = with_carried(rows, carried)
        names, key = objects(rows)
        found, code = values(rows)
        began, came, left = (numbers(rows, name) for name in ("began", "came", "left"))
        enqueue, dequeue = numbers(rows, "enqueue"), numbers(rows, "dequeue")
        tag = rows.column("tag")
        is_empty, is_carried = (np.asarray(pc.equal(tag, each)) for each in ("empty", "carried"))
        there, empty = np.flatnonzero(~is_empty), np.flatnonzero(is_empty)
        call, ret, since, until = _apart(key, (began, came, came, left))
        spans = Spans.of(there, since[there], until[there])
        call, ret = call[empty], ret[empty]
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
        yield from verdict_of(report("wrongly-empty", names, of, tell))
        yield filled("wrong", names_of(names, np.unique(of)))

    return whole(judge, mb)


def _apart(key: Column, moments: Sequence[Column]) -> list[Column]:
    """The moments of each object after all of the object before it."""
    never = int(max(each[each < NEVER].max(initial=0) for each in moments)) + 1
    return [np.minimum(each, never) + key * (never + 1) for each in moments]


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
