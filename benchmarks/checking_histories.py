"""Histories of millions of operations, made as columns, for the benchmark of checking.

Clients act one operation after the other without thinking. Operation by operation the object does
what it should at one moment (`point`), calls and returns lie around these moments, and 0 or more of
the changes have an unknown end: half of those were made. One lie can be planted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from jepsen_like.histories.history import Header, History, Kind, Op, Value
from spark.schema import BRINGING, NIL, SCHEMA, filled
from spark.table_files import seal

__all__ = ["Shape", "history", "write"]

Column = NDArray[np.int64]
_GROUP_ROWS = 1_000_000
_POLLED = 500  # records that a poll of the last reader returns


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    workload: str  # log, register, queue
    operations: int
    clients: int
    keys: int
    unknown: float = 0.0  # share of the operations
    is_violated: bool = False


def write(shape: Shape, path: Path) -> None:
    rows = _MAKERS[shape.workload](_Played.of(shape))
    count = len(rows["call"])
    order = np.lexsort((rows["step"], rows["call"], rows["object"]))
    rows = {name: column[order] for name, column in rows.items()}
    with pq.ParquetWriter(path, SCHEMA) as writer:
        for begin, end in _groups(rows["object"]):
            part = {name: column[begin:end] for name, column in rows.items()}
            writer.write_table(_table(shape.workload, part), row_group_size=max(1, end - begin))
    seal(path)
    assert count


def history(shape: Shape) -> History:
    """The same as clients would have written it down."""
    rows = _MAKERS[shape.workload](_Played.of(shape))
    order = np.lexsort((rows["step"], rows["call"]))
    names = list(rows)
    columns = zip(*(rows[name][order].tolist() for name in names), strict=True)
    told = (dict(zip(names, row, strict=True)) for row in columns)
    lines = []
    for _, each in groupby(told, key=itemgetter("call")):
        first, *_ = steps = list(each)
        asked, did = _VALUES[shape.workload](steps)
        end = Kind(first["kind"])
        for at, kind, value in (
            (first["call"], Kind.INVOKE, asked),
            (first["completed"], end, did),
        ):
            lines.append((at, kind, first["process"], first["f"], value))
    ops = [
        Op(index=index, time_ns=1000 * index, kind=kind, process=process, f=f, value=value)
        for index, (_, kind, process, f, value) in enumerate(sorted(lines, key=itemgetter(0)))
    ]
    return History(header=Header(workload=shape.workload, seed=0), ops=ops)


def _log_values(steps: list[dict[str, Any]]) -> tuple[Value, Value]:
    first = steps[0]
    key = _key_name(first["object"])
    if first["f"] == "send":
        value = first["number"]
        return [["send", key, value]], [["send", key, [max(first["offset"], 0), value]]]
    records = [[each["offset"], each["number"]] for each in steps if each["what"] == "read"]
    return [["poll"]], [["poll", {key: records} if records else {}]]


def _keyed_values(steps: list[dict[str, Any]]) -> tuple[Value, Value]:
    (first,) = steps
    key, value = _key_name(first["object"]), first["number"]
    is_change = first["f"] in BRINGING
    return [key, value if is_change else None], [key, None if value < 0 else value]


_VALUES = {"log": _log_values, "queue": _keyed_values, "register": _keyed_values}


def _key_name(number: int) -> str:
    return f"key-{number:03}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Played:
    """One row an operation: who did it when, and whether it changes something."""

    shape: Shape
    random: np.random.Generator
    process: Column
    key: Column
    point: Column
    call: Column
    ret: Column
    is_change: NDArray[np.bool_]
    is_unknown: NDArray[np.bool_]
    is_made: NDArray[np.bool_]  # a change that was really made

    @classmethod
    def of(cls, shape: Shape) -> "_Played":
        random = np.random.default_rng([shape.operations, shape.clients])
        rounds = shape.operations // shape.clients
        form = rounds, shape.clients
        ranks = random.permuted(np.tile(np.arange(shape.clients), (rounds, 1)), axis=1)
        point = ranks + np.arange(rounds)[:, None] * shape.clients
        gap = np.diff(point, axis=0, append=point[-1:] + shape.clients) / 2
        ret = point + gap * random.random(form)
        call = point - np.vstack([np.ones((1, shape.clients)), gap[:-1]]) * random.random(form)
        moments = np.empty(2 * point.size, dtype=np.int64)
        moments[np.argsort(np.concatenate([call.ravel(), ret.ravel()]))] = np.arange(len(moments))
        is_change = random.random(form) < 0.5
        is_unknown = is_change & (random.random(form) < 2 * shape.unknown)
        retired: Column = (
            np.cumsum(is_unknown, axis=0) - is_unknown
        )  # a process ends with an unknown end
        process = retired * shape.clients + np.arange(shape.clients)
        return cls(
            shape=shape,
            random=random,
            process=process.ravel(),
            key=random.integers(shape.keys, size=point.size),
            point=point.ravel(),
            call=moments[: point.size],
            ret=moments[point.size :],
            is_change=is_change.ravel(),
            is_unknown=is_unknown.ravel(),
            is_made=(is_change & ~(is_unknown & (random.random(form) < 0.5))).ravel(),
        )

    def rows(self) -> dict[str, Any]:
        return {
            "object": self.key,
            "process": self.process,
            "kind": np.where(self.is_unknown, "info", "ok"),
            "step": np.zeros(len(self.key), dtype=np.int64),
            "call": self.call,
            "ret": np.where(self.is_unknown, -1, self.ret),
            "completed": self.ret,
        }

    def before(self, group: Column, counted: NDArray[np.bool_]) -> Column:
        """For each operation: how many of those counted came before it in its group?"""
        order = np.lexsort((self.point, group))
        told = counted[order].astype(np.int64)
        running = np.cumsum(told) - told
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        lengths = np.diff(starts, append=len(order))
        found = np.empty(len(order), dtype=np.int64)
        found[order] = running - np.repeat(running[starts], lengths)
        return found


def _log(played: _Played) -> dict[str, Any]:
    """Sends, and polls that read one record after the other; at the end one reads everything."""
    end = played.before(played.key, played.is_made)
    stretch = played.process * played.shape.keys + played.key
    is_read = ~played.is_change
    while True:
        place = played.before(stretch, is_read)
        is_early = is_read & (place >= end)
        if not is_early.any():
            break
        is_read &= ~is_early
    is_send = played.is_change
    made = np.flatnonzero(played.is_made)
    log = made[np.lexsort((played.point[made], played.key[made]))]  # values: their operations
    begin = np.concatenate([[0], np.cumsum(np.bincount(played.key[log], minlength=1))])
    at = np.minimum(begin[played.key] + place, len(log) - 1)
    is_told = is_send & ~played.is_unknown
    rows = played.rows() | {
        "f": np.where(is_send, "send", "poll"),
        "what": np.where(is_send, "send", np.where(is_read, "read", "operation")),
        "number": np.where(is_send, np.arange(len(at)), np.where(is_read, log[at], -1)),
        "offset": np.where(is_told, end, np.where(is_read, place, -1)),
        "session": np.where(is_read, np.unique(stretch, return_inverse=True)[1], -1),
        "start": np.full(len(at), -1),
    }
    rows["object"] = np.where(rows["what"] == "operation", -1, played.key)
    last = _last_reading(played, log, begin)
    return {name: np.concatenate([column, last[name]]) for name, column in rows.items()}


def _last_reading(played: _Played, log: Column, begin: Column) -> dict[str, Any]:
    """All records, and of each key its end."""
    key, offset = played.key[log], np.arange(len(log)) - begin[played.key[log]]
    if played.shape.is_violated:
        lost = int(begin[0] + (begin[1] - begin[0]) * 7 // 8)  # too late for the others to read it
        log, key, offset = (np.delete(column, lost) for column in (log, key, offset))
    start = 2 * played.shape.operations
    _, poll = np.unique(key * len(log) + offset // _POLLED, return_inverse=True)
    ends = np.append(np.flatnonzero(np.diff(key)), len(key) - 1)
    called = np.concatenate([poll, poll[ends]]) * 2 + start + 2
    count, closing = len(log), len(ends)
    both = np.concatenate([np.arange(count), ends])
    is_end = np.arange(count + closing) >= count
    return {
        "object": key[both],
        "process": np.full(count + closing, start),
        "kind": np.full(count + closing, "ok"),
        "step": np.where(is_end, _POLLED, offset[both] % _POLLED),
        "call": called,
        "ret": called + 1,
        "completed": called + 1,
        "f": np.full(count + closing, "poll"),
        "what": np.where(is_end, "end", "read"),
        "number": np.where(is_end, -1, log[both]),
        "offset": np.where(is_end, -1, offset[both]),
        "session": start + key[both],
        "start": np.where(is_end, start, -1),
    }


def _register(played: _Played) -> dict[str, Any]:
    """Writes of values of their own, and reads."""
    order = np.lexsort((played.point, played.key))
    key, is_made = played.key[order], played.is_made[order]
    latest = np.maximum.accumulate(np.where(is_made, np.arange(len(order)), -1))
    writes = np.flatnonzero(is_made)
    if played.shape.is_violated:
        lie = int(np.flatnonzero(~played.is_change[order])[-1])  # the last read of the last key
        passed = np.searchsorted(writes, latest[lie]) - 3 * played.shape.clients
        latest[lie] = writes[passed]
    is_there = (latest >= 0) & (key[latest] == key)
    current = np.empty(len(order), dtype=np.int64)
    current[order] = np.where(is_there, order[latest], -1)
    return played.rows() | {
        "f": np.where(played.is_change, "write", "read"),
        "what": np.full(len(order), "access"),
        "number": np.where(played.is_change, np.arange(len(order)), current),
        "is_nil": ~played.is_change & (current < 0),
    }


def _queue(played: _Played) -> dict[str, Any]:
    """Values that leave in the order in which they came; some dequeues find nothing."""
    order = np.lexsort((played.point, played.key))
    key, is_enqueue = played.key[order], played.is_change[order]
    steps = np.where(played.is_made[order], 1, np.where(is_enqueue, 0, -1))
    running = np.cumsum(steps)
    begins = np.searchsorted(key, np.arange(played.shape.keys))
    running -= (running - steps)[begins][key]
    apart = key * len(order)  # so that each queue begins below the one before it
    lowest = np.minimum.accumulate(np.minimum(running, 0) - apart) + apart
    before = np.concatenate([[0], lowest[:-1]])
    before[begins] = 0
    is_empty = ~is_enqueue & (lowest < before)
    found = np.flatnonzero(~is_enqueue & ~is_empty)
    made = np.flatnonzero(played.is_made[order])
    rank = np.arange(len(found)) - np.searchsorted(key[found], key[found])
    came = made[np.searchsorted(key[made], key[found]) + rank]
    if played.shape.is_violated:
        last = np.flatnonzero(key[found] == key[found[-1]])[-1]
        earlier = last - 3 * played.shape.clients
        came[[earlier, last]] = came[[last, earlier]]
    value = np.full(len(order), -1)
    value[order[found]] = order[came]
    is_nil = np.zeros(len(order), dtype=bool)
    is_nil[order[is_empty]] = True
    return played.rows() | {
        "f": np.where(played.is_change, "enqueue", "dequeue"),
        "what": np.full(len(order), "access"),
        "number": np.where(played.is_change, np.arange(len(order)), value),
        "is_nil": is_nil,
    }


_MAKERS = {"log": _log, "queue": _queue, "register": _register}


def _groups(objects: Column) -> Iterator[tuple[int, int]]:
    """Whole objects, up to the size of a group; larger ones are cut, as `convert` does it."""
    begin = 0
    while begin < len(objects):
        end = min(begin + _GROUP_ROWS, len(objects))
        if end < len(objects):
            border = int(np.searchsorted(objects, objects[end], side="left"))
            end = border if border > begin else end
        yield begin, end
        begin = end


def _table(workload: str, rows: dict[str, Any]) -> pa.Table:
    count = len(rows["call"])
    columns: dict[str, Any] = {
        "run": "bench",
        "workload": workload,
        "options": "{}",
        "object": _named(rows["object"]),
        "process": pa.array(rows["process"]).cast(pa.string()),
        "call_ns": rows["call"],
        "ret_ns": rows["completed"],
        "invoked": rows["call"],
    }
    if "is_nil" in rows:
        columns["value"] = pc.if_else(pa.array(rows["is_nil"]), pa.scalar(NIL), None)
    for name in ("f", "what", "kind"):
        columns[name] = pa.array(rows[name]).dictionary_encode().cast(pa.string())
    for name in ("ret", "number", "offset", "session", "start"):
        if name in rows:
            columns[name] = pa.array(rows[name], mask=rows[name] < 0)
    for name in ("step", "call", "completed"):
        columns[name] = rows[name]
    return filled(SCHEMA, count, columns)


def _named(key: Column) -> pa.Array:
    names = ["", *(map(_key_name, range(int(key.max(initial=-1)) + 1)))]
    return pa.array(names, pa.string()).take(pa.array(key + 1))
