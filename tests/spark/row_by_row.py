"""The rows of a history as they are meant: one operation after the other, whatever that takes.

`spark.rows` makes the same of columns.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, assert_never

import msgpack

from jepsen_like.checkers.judges import LINT_SHOWN, Split, key_of, split_of
from jepsen_like.checkers.lint import Lint
from jepsen_like.checkers.log_steps import UNKNOWN, Ended, LogSteps, Read, Sent, Step
from jepsen_like.checkers.operations import NEVER, OBSERVE, Operation, paired
from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import NEMESIS, Kind, Op, Value
from spark.rows import WHOLE
from spark.schema import BRINGING, NIL, TAKING, Row

__all__ = ["rows"]

_WHAT = {Sent: "send", Read: "read", Ended: "end"}
_NUMBERS = range(-(1 << 63), 1 << 63)


def rows(workload: str, ops: Iterable[Op]) -> Iterator[Row]:
    exploding = _Exploding(split_of(workload))
    for operation in paired(exploding.passing(ops)):
        yield from exploding.lines()
        yield from exploding.rows(operation)
    yield from exploding.lines()
    yield from exploding.lint_row()


@dataclass(slots=True)
class _Exploding:
    split: Split
    steps: LogSteps = field(default_factory=LogSteps)
    passed: dict[int, Op] = field(default_factory=dict)  # by position
    waiting: list[Row] = field(default_factory=list)
    lint: Lint = field(default_factory=Lint)
    wrong: list[Finding] = field(default_factory=list)
    wrong_count: int = 0

    def passing(self, ops: Iterable[Op]) -> Iterator[Op]:
        """All of them, as pairing counts positions; what is no operation is kept as a line."""
        for position, op in enumerate(ops):
            for finding in self.lint.wrong(op):
                self.wrong_count += 1
                if self.wrong_count <= LINT_SHOWN:
                    self.wrong.append(finding)
            if op.process == NEMESIS or op.f == OBSERVE:
                self.waiting.append(_line(position, op))
            else:
                self.passed[position] = op
            yield op

    def lines(self) -> Iterator[Row]:
        yield from self.waiting
        self.waiting.clear()

    def lint_row(self) -> Iterator[Row]:
        if self.wrong:
            findings = [[each.rule, each.object, each.detail, each.ops] for each in self.wrong]
            told = Op(
                index=0,
                time_ns=0,
                kind=Kind.INFO,
                process=NEMESIS,
                f="lint",
                value=[self.wrong_count, findings],
            )
            yield _line(0, told)._replace(what="lint")

    def rows(self, operation: Operation) -> Iterator[Row]:
        whole = self._whole(operation)
        if self.split is not Split.STEPS:
            key = key_of(operation) if self.split is Split.KEYS else WHOLE
            row = whole._replace(object=key)
            yield row if self.split is not Split.KEYS else _accessed(row, operation)
            return
        steps = self.steps.of(operation)
        if not steps:
            yield whole
        for number, step in enumerate(steps):
            yield _exploded(whole, number, step)

    def _whole(self, operation: Operation) -> Row:
        invoked = self.passed[operation.call]
        completed = None
        if operation.ret_index is not None:  # `paired` says so as soon as it has passed
            completed = next(reversed(self.passed.values()))
        return Row(
            object=WHOLE,
            what="operation",
            process=json.dumps(operation.process),
            f=operation.f,
            kind=operation.kind.value,
            step=0,
            call=operation.call,
            ret=None if operation.ret == NEVER else operation.ret,
            call_ns=invoked.time_ns,
            ret_ns=None if completed is None else completed.time_ns,
            invoked=operation.index,
            completed=operation.ret_index,
            argument=_packed(operation.argument),
            result=_packed(operation.result),
            error=None if completed is None else completed.error,
            extra=_packed(operation.extra or None),
        )


def _exploded(whole: Row, number: int, step: Step) -> Row:
    row = whole._replace(
        object=str(step.key),
        what=_WHAT[type(step)],
        step=number,
        argument=None,
        result=None,
        extra=None if number else whole.extra,
    )
    match step:
        case Sent(value=value, offset=offset):
            return row._replace(offset=_known(offset), **_kept(value))
        case Read(value=value, offset=offset, session=session, since=since):
            read = row._replace(offset=offset, session=_known(session), **_kept(value))
            return read._replace(start=_known(since))
        case Ended(end=end, session=session, start=start, assigned=assigned):
            began = row._replace(start=_known(start), assigned=_known(assigned))
            return began._replace(offset=_known(end), session=_known(session))
        case other:
            assert_never(other)


def _accessed(whole: Row, operation: Operation) -> Row:
    """As an access, if it is a plain one: it says no more than a value."""
    match operation.f, operation.argument, operation.result:
        case f, [_, value], _ if f in BRINGING and value is not None:
            told = _kept(value)
        case f, [_, None], [_, value] if f in TAKING and operation.kind is Kind.OK:
            told = _kept(value)
        case f, [_, None], _ if f in TAKING and operation.kind is not Kind.OK:
            told = {}
        case _:
            return whole
    if operation.extra:
        return whole
    return whole._replace(what="access", argument=None, result=None, **told)


def _kept(value: Value) -> dict[str, Any]:
    if isinstance(value, int) and not isinstance(value, bool) and value in _NUMBERS:
        return {"number": value}
    return {"value": NIL if value is None else _packed(value)}


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
        argument=_packed(op.value),
        error=op.error,
        extra=_packed(dict(op.extra) or None),
    )


def _known(number: int) -> int | None:
    return None if number == UNKNOWN else number


def _packed(value: Value) -> bytes | None:
    if value is None:
        return None
    packed: bytes = msgpack.packb(value)
    return packed
