"""One run, line by line, while it is written: verdicts that are certain, and a bounded memory.

Lines may come in any order, and more than once; they are looked at in the order of their indexes,
which count from 0 without a gap. One that comes too early waits for those before it. So the same
lines come to the same verdicts, however they are cut into batches, and wherever a state is written
and read again between two of them.

Nothing is certain in a history that is wrong itself: from such a line on nothing is said any more.
What was said before stays said.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgpack

from jepsen_like.checkers.lint import Lint
from jepsen_like.checkers.online.logs import OnlineLogs
from jepsen_like.checkers.online.online_registers import OnlineRegisters
from jepsen_like.checkers.online.told import Doubt, Limits, Told
from jepsen_like.checkers.operations import NEVER, OBSERVE, Operation
from jepsen_like.checkers.verdict import Finding, Outcome
from jepsen_like.histories.history import (
    INITIAL,
    NEMESIS,
    TRUST_FAILURES,
    Header,
    Kind,
    MalformedHistory,
    Op,
)

__all__ = ["VERSION", "OnlineRun", "StateOfAnotherVersion", "why_refused"]

VERSION = 1  # of a state
_LOST = 1_000  # processes that ended as info, of which reuse is noticed
_Checker = OnlineLogs | OnlineRegisters


class StateOfAnotherVersion(ValueError):
    """It was written by another version of this program; the message names both."""


def _logs(header: Header, limits: Limits) -> OnlineLogs:
    return OnlineLogs(is_strict=bool(header.options.get("idempotent", True)), limits=limits)


def _registers(header: Header, limits: Limits) -> OnlineRegisters:
    initial = header.options.get(INITIAL, [None])
    if not isinstance(initial, list) or len(initial) != 1:
        raise MalformedHistory("nobody says what registers begin with: use judge")
    return OnlineRegisters(initial=initial[0], limits=limits)


_CHECKERS: dict[str, Callable[[Header, Limits], _Checker]] = {
    "admin": _logs,
    "cas-register": _registers,
    "log": _logs,
    "register": _registers,
}


def why_refused(workload: str) -> str | None:
    """Why no history of this workload can be judged while it is written."""
    if workload in _CHECKERS:
        return None
    known = ", ".join(sorted(_CHECKERS))
    return f"{workload or 'no model'}: needs all of the history: use judge (online: {known})"


@dataclass(slots=True)
class OnlineRun:
    header: Header
    limits: Limits = field(default_factory=Limits)
    next: int = 0  # the index that is due
    operations: int = 0  # that ended
    violated: int = 0  # objects
    undecided: int = 0
    is_begun: bool = False  # what was doubted from the beginning has been told
    doubted: str = ""  # why nothing is said of the run any more
    waiting: dict[int, Op] = field(default_factory=dict)  # by index
    lint: Lint = field(default_factory=Lint)  # knows what is open
    checker: _Checker = field(default_factory=OnlineLogs)

    @classmethod
    def of(cls, header: Header, limits: Limits | None = None) -> "OnlineRun":
        """What cannot be judged says so when its first line comes."""
        run = cls(header=header, limits=limits or Limits())
        run._prepare()
        return run

    def _prepare(self) -> None:
        why = why_refused(self.header.workload)
        try:
            if why is None:
                self.checker = _CHECKERS[self.header.workload](self.header, self.limits)
        except MalformedHistory as error:
            why = str(error)
        self.doubted = self.doubted or why or ""
        self.lint.trusts_failures = bool(self.header.options.get(TRUST_FAILURES))

    @property
    def outcome(self) -> Outcome:
        """Valid: nothing is broken up to the last line that was looked at."""
        if self.violated:
            return Outcome.VIOLATED
        return Outcome.UNDECIDED if self.undecided or self.doubted else Outcome.VALID

    @property
    def objects(self) -> int:
        return len(self.checker.names)

    def take(self, ops: Iterable[Op]) -> list[Told]:
        """What these lines make certain. Those that came before are passed over."""
        told: list[Told] = []
        if self.doubted and not self.is_begun:
            told += self._stopped(self.doubted)
        self.is_begun = True
        for op in ops:
            if op.index == self.next:
                told += self._looked_at(op)
            elif op.index > self.next and not self.doubted:
                self.waiting.setdefault(op.index, op)
            while self.waiting and self.next in self.waiting:
                told += self._looked_at(self.waiting.pop(self.next))
        if len(self.waiting) > self.limits.waiting:
            many = f"{len(self.waiting)} lines wait for line {self.next}, which does not come"
            told += self._stopped(many)
        return told

    def _looked_at(self, op: Op) -> Iterator[Told]:
        self.next += 1
        if self.doubted:
            return
        try:
            told = list(self._judged(op))
            self.violated += len({each.object for each in told if isinstance(each, Finding)})
            self.undecided += sum(isinstance(each, Doubt) for each in told)
            yield from told
        except (MalformedHistory, OverflowError) as error:
            yield from self._stopped(f"it makes no sense: {error}")

    def stop(self, why: str) -> list[Told]:
        """Nothing more is said of the run. Nothing happens if that is so already."""
        return [] if self.doubted else list(self._stopped(why))

    def _stopped(self, why: str) -> Iterator[Told]:
        self.doubted = why
        self.waiting.clear()
        self.lint, self.checker = Lint(), OnlineLogs()
        yield Doubt(object="", why=why)

    def _judged(self, op: Op) -> Iterator[Told]:
        invoked = self.lint.open.get(op.process)
        for wrong in self.lint.wrong(op):
            yield from self._stopped(f"the history itself is wrong: {wrong.rule}: {wrong.detail}")
            return
        if len(self.lint.lost) > _LOST:
            del self.lint.lost[next(iter(self.lint.lost))]
        if op.process == NEMESIS or op.f == OBSERVE:
            return
        if op.kind is Kind.INVOKE:
            yield from self.checker.invoked(op)
        else:
            self.operations += 1
            assert invoked is not None, "an end without a beginning is wrong"
            yield from self.checker.completed(_operation(invoked, op))

    # --- as a state ------------------------------------------------------------------------------

    def dumps(self) -> bytes:
        header = self.header
        about = [header.workload, header.seed, header.design, dict(header.options)]
        counts = [self.next, self.operations, self.violated, self.undecided, self.is_begun]
        lines = [
            [_line(op) for op in ops.values()]
            for ops in (self.waiting, self.lint.open, self.lint.lost)
        ]
        last = None if self.lint.last is None else _line(self.lint.last)
        state = [VERSION, about, [*counts, self.doubted], *lines, last, self.checker.dump()]
        packed: bytes = msgpack.packb(state)
        return packed

    @classmethod
    def loads(cls, state: bytes, limits: Limits | None = None) -> "OnlineRun":
        """Raises `StateOfAnotherVersion`."""
        version, *told = msgpack.unpackb(state, strict_map_key=False)
        if version != VERSION:
            raise StateOfAnotherVersion(f"a state of version {version}: this program has {VERSION}")
        (workload, seed, design, options), counts, waiting, opened, lost, last, checker = told
        header = Header(workload=workload, seed=seed, design=design, options=options)
        run = cls(header=header, limits=limits or Limits())
        run.next, run.operations, run.violated, run.undecided, run.is_begun, run.doubted = counts
        was_stopped = bool(run.doubted)
        run._prepare()
        run.waiting = {op.index: op for op in map(_op, waiting)}
        run.lint.open = {op.process: op for op in map(_op, opened)}
        run.lint.lost = {op.process: op for op in map(_op, lost)}
        run.lint.last = None if last is None else _op(last)
        if was_stopped:
            run.checker = OnlineLogs()
        run.checker.load(checker)
        return run


def _operation(invoked: Op, op: Op) -> Operation:
    return Operation(
        process=op.process,
        f=invoked.f,
        kind=op.kind,
        argument=invoked.value,
        result=op.value,
        call=invoked.index,
        ret=NEVER if op.kind is Kind.INFO else op.index,
        index=invoked.index,
        ret_index=op.index,
        extra={**invoked.extra, **op.extra} if op.extra else invoked.extra,
    )


def _line(op: Op) -> list[Any]:
    kind = op.kind.value
    return [op.index, op.time_ns, kind, op.process, op.f, op.value, op.error, dict(op.extra)]


def _op(line: list[Any]) -> Op:
    index, time_ns, kind, process, f, value, error, extra = line
    return Op(
        index=index,
        time_ns=time_ns,
        kind=Kind(kind),
        process=process,
        f=f,
        value=value,
        error=error,
        extra=extra,
    )
