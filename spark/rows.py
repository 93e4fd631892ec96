"""A history as tables of rows: some thousand lines at once, as columns.

    lines -> operations: each invocation and its completion -> rows of an operation

Most operations look alike: those become columns without anything in between. What says more, or
cannot be believed, goes one by one to those who know what it means: `LogSteps` and `Lint`. In
bounded memory; whoever wants the rows sorted sorts them.
"""

import gc
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
import pyarrow as pa

from jepsen_like.checkers.judges import LINT_SHOWN, Split, split_of
from jepsen_like.checkers.lint import Lint
from jepsen_like.checkers.operations import OBSERVE
from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import (
    NEMESIS,
    TRUST_FAILURES,
    Header,
    Kind,
    Lines,
    Op,
    Value,
)
from spark.log_rows import STEPS, LogRows
from spark.operation_rows import (
    WHOLE,
    Operations,
    keyed_rows,
    packed,
    table_of_rows,
    taking,
    whole_rows,
)
from spark.schema import SCHEMA, Row

__all__ = ["STEPS", "WHOLE", "no_cycles", "tables", "with_run"]

_CHANGES = frozenset({"add", "append", "cas", "enqueue", "put", "remove", "write"})
_ASKING = frozenset({"dequeue", "get", "read", "read-stale"})
_PLAIN = frozenset({int, str, bool, float, bytes, type(None)})


def tables(header: Header, blocks: Iterable[Lines]) -> Iterator[pa.Table]:
    """The rows without what is the same for the whole run. Raises `MalformedHistory`."""
    trusts = bool(header.options.get(TRUST_FAILURES))
    rows = _Rows(split_of(header.workload), trusts_failures=trusts)
    with no_cycles():
        for lines in blocks:
            if lines.indexes:
                yield from rows.of(lines)
        yield from rows.at_the_end()


def with_run(rows: pa.Table, header: Header, run: str) -> pa.Table:
    options = json.dumps(dict(header.options), sort_keys=True)
    told = {"run": run, "workload": header.workload, "options": options}
    constants = {name: pa.repeat(pa.scalar(each), len(rows)) for name, each in told.items()}
    arrays = [constants[name] if name in constants else rows.column(name) for name in SCHEMA.names]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


@contextmanager
def no_cycles() -> Iterator[None]:
    """Values have none: to look for these again and again would take most of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@dataclass(slots=True)
class _Paired:
    """Which lines of a block are what; invocations of earlier blocks stand behind them."""

    calls: list[int] = field(default_factory=list)
    rets: list[int] = field(default_factory=list)  # -1: there is none
    others: list[int] = field(default_factory=list)  # faults and observations
    held: list[tuple[int, Op]] = field(default_factory=list)
    begun: dict[int | str, int] = field(default_factory=dict)  # by process, and not ended yet
    ended: dict[int | str, int] = field(default_factory=dict)  # by process, as info
    is_right: bool = True  # as far as the order of a process's lines goes


@dataclass(slots=True)
class _Rows:
    split: Split
    trusts_failures: bool = False
    log: LogRows = field(default_factory=LogRows)
    position: int = 0
    open: dict[int | str, tuple[int, Op]] = field(default_factory=dict)  # by process
    lost: dict[int | str, Op] = field(default_factory=dict)  # as `Lint` has them
    last: Op | None = None
    wrong: list[Finding] = field(default_factory=list)
    wrong_count: int = 0
    trusted: int = 0  # failures that would be wrong otherwise

    def of(self, lines: Lines) -> Iterator[pa.Table]:
        size = len(lines.indexes)
        paired = self._paired(lines)
        both, at = lines, np.arange(self.position, self.position + size)
        if paired.held:
            held = Lines.of(op for _, op in paired.held)
            both = Lines(*([*column, *more] for column, more in zip(lines, held, strict=True)))
            at = np.append(at, [position for position, _ in paired.held])
        operations = Operations.of(both, paired.calls, paired.rets, at)
        self._look_at(lines, both, paired, operations)
        self.open |= {
            process: (self.position + place, lines.op(place))
            for process, place in paired.begun.items()
        }
        yield from self._rows(operations)
        if paired.others:
            rows = [_line(self.position + place, lines.op(place)) for place in paired.others]
            yield table_of_rows(rows)
        self.position += size

    def at_the_end(self) -> Iterator[pa.Table]:
        if self.open:
            at, ops = zip(*sorted(self.open.values(), key=itemgetter(0)), strict=True)
            calls, rets = range(len(ops)), [-1] * len(ops)
            yield from self._rows(Operations.of(Lines.of(ops), calls, rets, np.array(at)))
        if self.wrong:
            findings = [[each.rule, each.object, each.detail, each.ops] for each in self.wrong]
            yield table_of_rows([_told("lint", [self.wrong_count, findings])])
        if self.trusted:
            yield table_of_rows([_told("trusted", self.trusted)])

    def _rows(self, operations: Operations) -> Iterator[pa.Table]:
        match self.split:
            case Split.STEPS:
                yield from self.log.of(operations)
            case Split.KEYS:
                yield keyed_rows(operations)
            case Split.WHOLE:
                yield whole_rows(operations)

    def _paired(self, lines: Lines) -> _Paired:
        """As `jepsen_like.checkers.operations.paired` pairs them."""
        paired = _Paired()
        told = zip(lines.kind, lines.process, lines.f, strict=True)
        for at, (kind, process, f) in enumerate(told):
            if process == NEMESIS or f == OBSERVE:
                paired.others.append(at)
                continue
            call = paired.begun.pop(process, None)
            if call is None and process in self.open:
                call = len(lines.indexes) + len(paired.held)
                paired.held.append(self.open.pop(process))
            is_call = kind == "invoke"
            if is_call is (call is not None) or process in paired.ended or process in self.lost:
                paired.is_right = False
            if is_call:
                paired.begun[process] = at
            elif kind == "info":
                paired.ended[process] = at
            if call is not None:
                paired.calls.append(call)
                paired.rets.append(-1 if is_call else at)
        return paired

    def _look_at(self, lines: Lines, both: Lines, paired: _Paired, operations: Operations) -> None:
        """Whether the lines can be believed. Only those that may be wrong are looked at closely."""
        last, self.last = self.last, lines.op(-1)
        is_right = paired.is_right and _is_in_order(lines, last)
        if is_right and _do_as_asked(both, paired, operations):
            self.lost |= {process: lines.op(at) for process, at in paired.ended.items()}
            return
        held = {op.process: op for _, op in paired.held}
        before = {process: op for process, (_, op) in self.open.items()}
        trusts = self.trusts_failures
        lint = Lint(open=before | held, lost=self.lost, last=last, trusts_failures=trusts)
        for op in lines.ops():
            for finding in lint.wrong(op):
                self.wrong_count += 1
                if self.wrong_count <= LINT_SHOWN:
                    self.wrong.append(finding)
        self.trusted += lint.trusted


def _is_in_order(lines: Lines, last: Op | None) -> bool:
    index = np.array(lines.indexes if last is None else [last.index, *lines.indexes])
    time_ns = np.array(lines.time_ns if last is None else [last.time_ns, *lines.time_ns])
    return bool((index[1:] > index[:-1]).all() and (time_ns[1:] >= time_ns[:-1]).all())


def _do_as_asked(lines: Lines, paired: _Paired, operations: Operations) -> bool:
    doubts = []
    ops = (operations.f, operations.kind, operations.argument, operations.result)
    for at, (f, kind, asked, did) in enumerate(zip(*ops, strict=True)):
        if kind == "ok":
            if not (did == asked if f in _CHANGES else _did_as_asked(f, asked, did)):
                doubts.append(at)
        elif kind == "fail":
            doubts.append(at)
    take = taking(paired.rets)
    if (take(lines.f)) != operations.f:
        return False
    for at in doubts:
        asked, done = lines.op(paired.calls[at]), lines.op(paired.rets[at])
        if any(Lint(open={asked.process: asked}).wrong(done)):
            return False
    return True


def _did_as_asked(f: str, asked: Value, did: Value) -> bool:
    """Whether it surely did: what is unusual, `Lint` is asked about."""
    match f, asked, did:
        case "send", [["send", key, value]], [["send", same_key, [_, same_value]]]:
            return bool(key == same_key and value == same_value)
        case "poll", [["poll"]], [["poll", _]]:
            return True
        case _, None, list() if f in _ASKING:
            return _PLAIN.issuperset(map(type, did))
        case _, [str(key), None], [str(same_key), _] if f in _ASKING:
            return key == same_key
        case _:
            return False


def _told(what: str, value: Value) -> Row:
    told = Op(index=0, time_ns=0, kind=Kind.INFO, process=NEMESIS, f=what, value=value)
    return _line(0, told)._replace(what=what)


def _line(position: int, op: Op) -> Row:
    return Row(
        object=WHOLE,
        what="line",
        process=json.dumps(op.process),
        f=op.f,
        kind=op.kind.value,
        step=0,
        call=position,
        ret=None,
        call_ns=op.time_ns,
        ret_ns=None,
        invoked=op.index,
        completed=None,
        argument=packed(op.value),
        error=op.error,
        extra=packed(dict(op.extra) or None),
    )
