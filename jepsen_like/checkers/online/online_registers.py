"""Registers whose values are written once, judged at each return, in memory that does not grow.

The zones of `jepsen_like.checkers.zones`, one access after the other. A value's zone has the first
return and the last call of its write and its reads. Two values clash if each has a first return
before the last call of the other: then neither can have come first. A first return never changes,
and a last call only grows; so each access is held against the others once, when it returns.

What can be forgotten: all that will ever return was called after the earliest call that is open
now, or later. Let a value have returned before that moment, and another one have been called again
after the first value had returned: whoever reads the first one from now on is wrong. It is *over*,
and is not known any more. Of all zones that returned before that moment only the two latest calls
matter. So there are as many values as there are clients, and the writes whose end nobody knows.

A value that is over may be written again. One that is written again before cannot be told from
itself: the register is left to a search, which needs all of the history; so is a compare-and-set.
Not looked at: versions, and reads that may be old.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from jepsen_like.checkers.online.told import Doubt, Limits, Name, Told, name_of
from jepsen_like.checkers.operations import NEVER, Operation, malformed, not_of, pair_of
from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import Kind, Op, Value

__all__ = ["OnlineRegisters"]

_BEFORE_ALL = -2
_NEEDS_ALL = "needs all of the history: use judge"
_READS = ("read", "read-stale")


@dataclass(slots=True)
class _Zone:
    first: int  # return
    last: int  # call
    first_by: int  # the lines of these
    last_by: int


@dataclass(slots=True)
class _Register:
    zones: dict[Name, _Zone]
    pending: dict[Name, int] = field(default_factory=dict)  # calls of writes nobody saw
    calls: dict[int | str, int] = field(default_factory=dict)  # that are open, by process
    latest: list[Any] = field(default_factory=lambda: [_BEFORE_ALL, None, -1, _BEFORE_ALL])
    kept: int = 0  # zones that the last tidying left

    def clash(self, name: Name, zone: _Zone) -> int | None:
        """A line of another value that must be there while this one must."""
        last, whose, line, second = self.latest
        if (last if whose != name else second) > zone.first:
            return int(line)
        for other, its in self.zones.items():
            if its.first < zone.last and its.last > zone.first and other != name:
                return its.first_by
        return None

    def tidy(self) -> None:
        """Forgets what is over."""
        earliest = min(self.calls.values(), default=NEVER)
        ended = {name: each for name, each in self.zones.items() if each.first < earliest}
        last, whose, line, second = self.latest
        for name, each in ended.items():
            if name == whose:
                last = max(last, each.last)
            elif each.last > last:
                last, whose, line, second = each.last, name, each.first_by, last
            else:
                second = max(second, each.last)
        for name, each in ended.items():
            if (second if name == whose else last) > each.first:
                del self.zones[name]
        self.latest = [last, whose, line, second]
        self.kept = len(self.zones)


@dataclass(slots=True)
class OnlineRegisters:
    initial: Value = None
    limits: Limits = field(default_factory=Limits)
    registers: dict[str, _Register | None] = field(default_factory=dict)  # None: no more

    @property
    def names(self) -> list[str]:
        return list(self.registers)

    def invoked(self, op: Op) -> Iterator[Told]:
        key, value = _pair(op, op.value)
        register = self._register(key)
        if register is None:
            return
        register.calls[op.process] = op.index
        if op.f == "cas":
            yield self._doubted(key, f"compare-and-set {_NEEDS_ALL}")
        elif op.f == "write":
            name = name_of(value)
            if name is None or name in register.pending or name in register.zones:
                yield self._doubted(key, f"{value!r} is written again, which {_NEEDS_ALL}")
                return
            register.pending[name] = op.index
            if len(register.pending) > self.limits.unknown:
                many = f"more than {self.limits.unknown} writes of unknown end"
                yield self._doubted(key, f"{many}: {_NEEDS_ALL}")
        elif op.f not in _READS:
            raise not_of(_asked(op), "a register")

    def completed(self, operation: Operation) -> Iterator[Told]:
        key, value = _pair(operation, operation.argument)
        register = self.registers.get(key)
        if register is None:
            return
        register.calls.pop(operation.process, None)
        found: Finding | None = None
        if operation.f == "write":
            found = self._written(key, register, name_of(value), operation)
        elif operation.kind is Kind.OK:
            seen = _pair(operation, operation.result)[1]
            is_stale = operation.f == "read-stale"
            found = self._seen(key, register, seen, operation, is_stale=is_stale)
        if found is not None:
            self.registers[key] = None
            yield found
        elif len(register.zones) > 2 * register.kept + self.limits.zones:
            register.tidy()
            if len(register.zones) > self.limits.unknown:
                yield self._doubted(key, f"an operation is open for too long: it {_NEEDS_ALL}")

    def _written(
        self, key: str, register: _Register, name: Name, operation: Operation
    ) -> Finding | None:
        if operation.kind is Kind.FAIL:
            if register.pending.pop(name, None) is None and name in register.zones:
                seen = register.zones[name].first_by
                detail = f"{operation.argument[1]!r} was read, and its write failed"
                ops = tuple(sorted({seen, *operation.evidence}))
                return Finding(rule="G1a", object=key, detail=detail, ops=ops)
            return None
        if operation.kind is Kind.INFO:
            return None
        return self._access(key, register, name, operation, operation.call)

    def _seen(
        self, key: str, register: _Register, value: Value, operation: Operation, *, is_stale: bool
    ) -> Finding | None:
        """A read that may be old says only that the value was there once."""
        name = name_of(value)
        if name not in register.zones and name not in register.pending:
            if is_stale:
                return None
            detail = f"{value!r} was read, and it was never written, or replaced before"
            return Finding.of("not-linearizable", key, detail, operation)
        call = _BEFORE_ALL if is_stale else operation.call
        return self._access(key, register, name, operation, call)

    def _access(
        self, key: str, register: _Register, name: Name, operation: Operation, call: int
    ) -> Finding | None:
        line = operation.index if operation.ret_index is None else operation.ret_index
        zone = register.zones.get(name)
        if zone is None:
            written = register.pending.pop(name, call)
            last_by = operation.index if call >= written else written
            register.zones[name] = _Zone(operation.ret, max(written, call), line, last_by)
            return None
        if call <= zone.last:
            return None
        zone.last, zone.last_by = call, operation.index
        other = register.clash(name, zone)
        if other is None:
            return None
        value = operation.argument[1] if operation.f == "write" else operation.result[1]
        detail = f"{value!r} was there before and after, and another value in between"
        lines = {zone.first_by, other, *operation.evidence} - {-1}
        return Finding(rule="not-linearizable", object=key, detail=detail, ops=tuple(sorted(lines)))

    def _register(self, key: str) -> _Register | None:
        if key not in self.registers:
            before = _Zone(_BEFORE_ALL, _BEFORE_ALL, -1, -1)
            self.registers[key] = _Register({name_of(self.initial): before})
        return self.registers[key]

    def _doubted(self, key: str, why: str) -> Doubt:
        self.registers[key] = None
        return Doubt(object=key, why=why)

    def dump(self) -> Value:
        return [[key, each and _dumped(each)] for key, each in self.registers.items()]

    def load(self, told: Value) -> None:
        self.registers = {key: each and _loaded(each) for key, each in told}


def _dumped(register: _Register) -> Value:
    zones = [
        [name, each.first, each.last, each.first_by, each.last_by]
        for name, each in register.zones.items()
    ]
    more = list(register.pending.items()), list(register.calls.items())
    return [zones, *more, register.latest, register.kept]


def _loaded(told: Value) -> _Register:
    zones, pending, calls, latest, kept = told
    return _Register(
        {name: _Zone(*rest) for name, *rest in zones}, dict(pending), dict(calls), latest, kept
    )


def _pair(of: Op | Operation, value: Value) -> tuple[str, Value]:
    try:
        key, own = pair_of(value)
        hash(name_of(own))
    except (TypeError, ValueError) as error:
        operation = of if isinstance(of, Operation) else _asked(of)
        raise malformed(operation, f"a {of.f} of a register") from error
    return str(key), own


def _asked(op: Op) -> Operation:
    return Operation(
        process=op.process,
        f=op.f,
        kind=Kind.INFO,
        argument=op.value,
        call=op.index,
        ret=NEVER,
        index=op.index,
    )
