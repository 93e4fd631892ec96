"""Whether a history can be believed: what a recorder gets wrong, not what a system gets wrong.

A checker that is given a lie accuses an honest system, or acquits a broken one. So a history with
any of these is undecided, whatever else is found in it:

    overlap        a process invokes while its last operation is still open
    unmatched      a completion without an invocation, or of another f
    backwards      time, or the index, goes back from one line to the next
    reuse          a process goes on after an operation of which nobody knows the end
    timed-out      a change that failed because nobody answered, or with an error that Kafka also
                   gives after it has appended: it may have happened, or still may, and is `info`;
                   a user who knows better trusts such failures, and they are counted
    changed        a change that is ok with another key or value than was asked for, or the answer
                   to a question about another key; so for each step of a transaction

A history may also be honest and show nothing: one without any operation that was ok is undecided as
well, which the judges say. Not looked at: the nemesis, and observations, which have no invocation;
equal times are no mistake. A read that timed out may be called a failure: it changed nothing.

Source: Jepsen's history rules; reports of histories that were wrong so; Kafka's error codes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import NEMESIS, Kind, Op, Value

__all__ = ["Lint", "lint"]

_SAMPLES = ("observe",)
_HARMLESS = (
    *("read", "read-stale", "poll", "get", "assign", "subscribe"),
    *("committed", "committed-stale", "join"),
)
_CHANGES = ("add", "append", "cas", "enqueue", "put", "remove", "write")
_ASKING = ("dequeue", "get", "read", "read-stale")
_NO_FAILURES = (
    *("timed out", "timed-out", "timed_out", "timeout", "time-out", "timedout"),
    *("no answer", "connection reset", "broken pipe", "network_exception"),
    "not_enough_replicas_after_append",
)


@dataclass(slots=True)
class Lint:
    """Looks at one line after the other; remembers only what is open."""

    trusts_failures: bool = False
    trusted: int = 0  # failures that would be wrong otherwise
    open: dict[int | str, Op] = field(default_factory=dict)
    lost: dict[int | str, Op] = field(default_factory=dict)  # processes, by what ended them
    last: Op | None = None

    def wrong(self, op: Op) -> Iterator[Finding]:
        yield from self._order(op)
        if op.process == NEMESIS or op.f in _SAMPLES:
            return
        if op.kind is Kind.INVOKE:
            yield from self._invoked(op)
        else:
            yield from self._completed(op)

    def _order(self, op: Op) -> Iterator[Finding]:
        last, self.last = self.last, op
        if last is None:
            return
        if op.time_ns < last.time_ns:
            yield _finding("backwards", f"at {op.time_ns} ns, after {last.time_ns} ns", last, op)
        if op.index <= last.index:
            yield _finding("backwards", f"index {op.index} follows {last.index}", last, op)

    def _invoked(self, op: Op) -> Iterator[Finding]:
        before = self.open.get(op.process)
        if before is not None:
            yield _finding("overlap", f"{op.f} begins while {before.f} is open", before, op)
        if op.process in self.lost:
            ended = self.lost.pop(op.process)
            yield _finding("reuse", f"goes on after its {ended.f} ended as info", ended, op)
        self.open[op.process] = op

    def _completed(self, op: Op) -> Iterator[Finding]:
        invoked = self.open.pop(op.process, None)
        if invoked is None:
            yield _finding("unmatched", f"{op.f} ends and never began", op)
        elif invoked.f != op.f:
            yield _finding("unmatched", f"{op.f} ends what began as {invoked.f}", invoked, op)
        if op.kind is Kind.INFO:
            self.lost[op.process] = op
        if invoked is not None and op.kind is Kind.OK and _did_another_thing(invoked, op):
            told = f"it was asked for {invoked.value!r:.100}, and did {op.value!r:.100}"
            yield _finding("changed", f"{op.f}: {told}", invoked, op)
        if op.kind is Kind.FAIL and op.f not in _HARMLESS and _is_no_failure(op.error):
            if self.trusts_failures:
                self.trusted += 1
            else:
                told = f"{op.f} is said to have failed: {op.error} (believed by --trust-failures)"
                yield _finding("timed-out", told, op)


def lint(ops: Iterable[Op], rules: Lint | None = None) -> list[Finding]:
    rules = rules or Lint()
    return [finding for op in ops for finding in rules.wrong(op)]


def _is_no_failure(error: str | None) -> bool:
    return error is not None and any(word in error.lower() for word in _NO_FAILURES)


def _did_another_thing(invoked: Op, op: Op) -> bool:
    """An answer without a value says no more than that it was done."""
    match op.f, invoked.value, op.value:
        case f, asked, did if f in _CHANGES:
            return did is not None and _listed(asked) != _listed(did)
        case f, [asked, None], [did, _] if f in _ASKING:
            return str(asked) != str(did)
        case "txn", _, None:
            return False
        case _:
            return _steps(invoked) != _steps(op)


def _listed(value: Value) -> Value:
    return list(map(_listed, value)) if isinstance(value, list | tuple) else value


def _steps(op: Op) -> list[Value]:
    """What each step asked for, or did, without what it read. What makes no sense is left to
    others."""
    steps = []
    for step in op.value if isinstance(op.value, list | tuple) else ():
        match step:
            case ["send", key, [_, value]] if op.kind is Kind.OK:
                steps.append(["send", key, value])
            case ["send" | "append" | "w" as f, key, value]:
                steps.append([f, key, value])
            case ["r", key, *_]:
                steps.append(["r", key])
    return list(map(_listed, steps))


def _finding(rule: str, detail: str, *ops: Op) -> Finding:
    return Finding(
        rule=f"lint-{rule}",
        object=f"process {ops[-1].process}",
        detail=detail,
        ops=tuple(op.index for op in ops),
    )
