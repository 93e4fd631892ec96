"""The log workload, judged while it is written: sends and polls of many keys.

What operations say comes from `LogSteps`, as for the judge of whole histories; what each key
remembers, and its rules, are in `log_key`. Rules that only the end can tell are left to the judge:
`lost-write`, since somebody may still read the value; what is missing behind the last record of a
reader that does not move on; and where a send landed that was told no offset, beside its
neighbours. Producers that are not idempotent may leave a value at two offsets: then a reading of
the whole log is not held against what was known.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from jepsen_like.checkers.log_steps import UNKNOWN, Ended, LogSteps, Read, Sent, Step
from jepsen_like.checkers.online.intervals import Intervals
from jepsen_like.checkers.online.log_key import Broken, LogKey, Reading
from jepsen_like.checkers.online.told import Doubt, Limits, Name, Told, name_of
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import Kind, Op, Value

__all__ = ["OnlineLogs"]

_SENDING = ("send", "txn")
_Sends = list[tuple[str, Name]]


@dataclass(slots=True)
class OnlineLogs:
    is_strict: bool = True  # producers are idempotent
    limits: Limits = field(default_factory=Limits)
    keys: dict[str, LogKey | None] = field(default_factory=dict)  # None: no more
    steps: LogSteps = field(default_factory=LogSteps)
    calls: dict[int | str, int] = field(default_factory=dict)  # of reads that are open
    begun: dict[int | str, dict[str, Reading]] = field(default_factory=dict)  # by assignments

    @property
    def names(self) -> list[str]:
        return list(self.keys)

    def invoked(self, op: Op) -> Iterator[Told]:
        if op.f in _SENDING:
            for key, name in _asked(op.value):
                log = self._key(key)
                if log is not None and not log.invoked(name, op.index):
                    self.keys[key] = None
                    why = f"{name!r} is sent twice, which needs all of the history: use judge"
                    yield Doubt(object=key, why=why)
        if op.f != "send":
            self.calls[op.process] = op.index
        if op.f == "assign" and self.is_strict and isinstance(op.value, list):
            known = {str(key): self.keys.get(str(key)) for key in op.value}
            self.begun[op.process] = {key: log.beginning() for key, log in known.items() if log}

    def completed(self, operation: Operation) -> Iterator[Told]:
        process = operation.process
        self.calls.pop(process, None)
        begun = self.begun.pop(process, {})
        before = self.steps.sessions(process) if operation.f not in ("send", "poll") else {}
        found = self.steps.of(operation)
        if operation.kind is not Kind.OK:
            yield from self._not_done(operation)
        elif found:
            yield from self._done(operation, found)
        if operation.kind is Kind.INFO:
            before = {**self.steps.sessions(process), **before}
            self.steps.forget(process)
            for log in self.keys.values():
                if log is not None:
                    log.sends.pop(process, None)
        if before:
            yield from self._left(operation, before)
        if operation.f == "assign" and operation.extra.get("seek") == "beginning":
            self._begin(process, begun)

    def _done(self, operation: Operation, steps: Sequence[Step]) -> Iterator[Told]:
        last: dict[tuple[str, int], int] = {}  # of sessions, in this operation
        own: _Sends = []
        told: list[tuple[str, Broken]] = []
        if operation.f == "txn":
            own = [(step.key, name_of(step.value)) for step in steps if isinstance(step, Sent)]
        for step in steps:
            log = self._key(step.key)
            if log is None:
                continue
            found = self._step(log, step, operation, last)
            told += [(step.key, each) for each in found]
            if isinstance(step, Read) and own and (step.key, name_of(step.value)) in own:
                detail = f"a transaction polled {step.value!r}, which it sent itself"
                told.append((step.key, Broken("precommitted-read", detail)))
        for key in {step.key for step in steps}:
            log = self.keys[key]
            if log is not None and log.is_due:
                self._forget(log)
        yield from self._broken(operation, told)

    def _step(
        self,
        log: LogKey,
        step: Step,
        operation: Operation,
        last: dict[tuple[str, int], int],
    ) -> Iterator[Broken]:
        strict = self.is_strict
        line = operation.index if operation.ret_index is None else operation.ret_index
        match step:
            case Sent(value=value, offset=offset):
                at, process = None if offset == UNKNOWN else offset, operation.process
                yield from log.acknowledged(
                    name_of(value), at, line, process=process, strict=strict
                )
            case Read(key=key, value=value, offset=offset, session=session):
                if session != UNKNOWN:
                    is_internal = (key, session) in last
                    before = last.get((key, session), log.sessions.get(session))
                    if before is not None:
                        yield from log.moved(session, before, offset, line, is_internal=is_internal)
                    last[key, session] = offset
                    if self.steps.goes_on(operation.process, key, session):
                        log.sessions[session] = offset
                yield from log.read(name_of(value), offset, line, session=session, strict=strict)
            case Ended(end=end, session=session, start=start):
                if end != UNKNOWN:
                    yield from log.ended(end, operation.call, line)
                if start != UNKNOWN:
                    yield from log.came_to_the_end(session)

    def _not_done(self, operation: Operation) -> Iterator[Told]:
        if operation.f not in _SENDING:
            return
        for key, name in _asked(operation.argument):
            log = self.keys.get(key)
            if log is not None and operation.kind is Kind.FAIL:
                yield from self._broken(operation, [(key, each) for each in log.failed(name)])
            elif log is not None:
                log.unknown(name)
                self._forget(log)

    def _left(self, operation: Operation, before: dict[str, int]) -> Iterator[Told]:
        """Sessions that the process does not go on with."""
        now = self.steps.sessions(operation.process)
        for key, session in before.items():
            log = self.keys.get(key)
            if log is not None and now.get(key) != session:
                yield from self._broken(operation, [(key, each) for each in log.closed(session)])

    def _begin(self, process: int | str, begun: dict[str, Reading]) -> None:
        for key, session in self.steps.sessions(process).items():
            log = self.keys.get(key)
            if log is not None and key in begun:
                log.readings[session] = begun[key]

    def _broken(self, operation: Operation, told: Sequence[tuple[str, Broken]]) -> Iterator[Told]:
        """One of each rule; a key of which one is broken is not judged any longer."""
        seen: set[tuple[str, str]] = set()
        for key, (rule, detail, lines) in told:
            if (key, rule) not in seen:
                seen.add((key, rule))
                self.keys[key] = None
                ops = tuple(sorted({*lines, *operation.evidence} - {-1}))
                yield Finding(rule=rule, object=key, detail=detail, ops=ops)

    def _forget(self, log: LogKey) -> None:
        earliest = min(self.calls.values(), default=NEVER)
        log.forget(self.limits.values_of_each(len(self.keys)), self.limits.unknown, earliest)

    def _key(self, key: str) -> LogKey | None:
        if key not in self.keys:
            self.keys[key] = LogKey()
        return self.keys[key]

    def dump(self) -> Value:
        begun = [
            [
                process,
                [
                    [key, each.offsets.starts, each.offsets.ends, sorted(each.names, key=repr)]
                    for key, each in own.items()
                ],
            ]
            for process, own in self.begun.items()
        ]
        keys = [[key, log and log.dump()] for key, log in self.keys.items()]
        return [keys, self.steps.dump(), list(self.calls.items()), begun]

    def load(self, told: Value) -> None:
        keys, steps, calls, begun = told
        self.keys = {key: log and LogKey.load(log) for key, log in keys}
        self.steps = LogSteps.load(steps)
        self.calls = dict(calls)
        self.begun = {
            process: {
                key: Reading(Intervals(starts, ends), set(names))
                for key, starts, ends, names in own
            }
            for process, own in begun
        }


def _asked(value: Value) -> _Sends:
    """The values of an operation that sends, by key; what makes no sense is told when it ends."""
    sends: _Sends = []
    for step in value if isinstance(value, list) else ():
        match step:
            case ["send", int() | str() as key, sent]:
                try:
                    sends.append((str(key), name_of(sent)))
                except TypeError:
                    continue
    return sends
