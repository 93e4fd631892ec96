"""Operations as intervals: an invocation and its completion become one value.

Time is the position in the history, which is the order in which things were written down: an
operation was written before its request left, and after its answer came, so that its effect lies
strictly between `call` and `ret`. No two positions are equal, which a clock cannot promise.

Whatever nobody knows the end of (`info`, or open when the history ends) may take effect at any
time later: its `ret` is NEVER.

Values told apart by what they are, and not only by what Python takes for equal.

1, 1.0 and True are one key of a dict, and three values of a history. What is not a number (NaN)
equals nothing in Python, and itself here.

The greatest of all that had ended before a moment, for one moment after the other.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, Generic, TypeVar

from jepsen_like.histories.history import NEMESIS, Kind, Op, Value

__all__ = [
    "NEVER",
    "NO_LINE",
    "OBSERVE",
    "Earlier",
    "Operation",
    "exact",
    "lines_of",
    "operations",
    "paired",
]

NEVER = 1 << 60  # later than every position; small enough to add to
NO_LINE = -1  # index of an operation that is no line of the history
OBSERVE = "observe"  # samples, not operations: they have no invocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    process: int | str
    f: str
    kind: Kind  # ok, fail or info
    argument: Value  # as invoked
    result: Value = None  # as completed
    call: int
    ret: int  # > call; NEVER if it is not known to have ended
    index: int  # of the invocation, as evidence
    ret_index: int | None = None  # of the completion; None: there is none
    extra: Mapping[str, Any] = field(default_factory=dict)  # of both; the completion wins

    @property
    def evidence(self) -> tuple[int, ...]:
        if self.index == NO_LINE:
            return ()
        return (self.index,) if self.ret_index is None else (self.index, self.ret_index)


def lines_of(operations: Iterable[Operation]) -> tuple[int, ...]:
    """All lines of these, in their order: what shows that a rule is broken."""
    return tuple(sorted({index for each in operations for index in each.evidence}))


def operations(ops: Iterable[Op]) -> list[Operation]:
    """In order of their invocations. What `lint` complains of is left out."""
    return sorted(paired(ops), key=lambda operation: operation.call)


def paired(ops: Iterable[Op]) -> Iterator[Operation]:
    """In order of their completions, with only the open ones in memory; those never done last."""
    pending: dict[int | str, tuple[int, Op]] = {}
    for position, op in enumerate(ops):
        if op.process == NEMESIS or op.f == OBSERVE:
            continue
        if op.kind is Kind.INVOKE:
            if op.process in pending:
                yield _unfinished(*pending[op.process])
            pending[op.process] = position, op
        elif op.process in pending:
            yield _finished(*pending.pop(op.process), position, op)
    for call, op in pending.values():
        yield _unfinished(call, op)


def _finished(call: int, invoked: Op, ret: int, completed: Op) -> Operation:
    return Operation(
        process=invoked.process,
        f=invoked.f,
        kind=completed.kind,
        argument=invoked.value,
        result=completed.value,
        call=call,
        ret=NEVER if completed.kind is Kind.INFO else ret,
        index=invoked.index,
        ret_index=completed.index,
        extra={**invoked.extra, **completed.extra} if completed.extra else invoked.extra,
    )


def _unfinished(call: int, invoked: Op) -> Operation:
    return Operation(
        process=invoked.process,
        f=invoked.f,
        kind=Kind.INFO,
        argument=invoked.value,
        call=call,
        ret=NEVER,
        index=invoked.index,
        extra=invoked.extra,
    )


@dataclass(frozen=True, slots=True)
class _Told:
    """Something that equals numbers of other kinds, as it is written."""

    text: str

    def __repr__(self) -> str:
        return self.text


def exact(value: Value) -> Hashable:
    """Hashable, and equal where the value is the same. Raises TypeError: a mapping cannot be."""
    match value:
        case bool() | float():
            return _Told(repr(value))
        case list() | tuple():
            return tuple(map(exact, value))
        case _:
            hash(value)
            told: Hashable = value
            return told


Item = TypeVar("Item")


class Earlier(Generic[Item]):
    def __init__(
        self, items: Iterable[Item], *, ret: Callable[[Item], int], rank: Callable[[Item], int]
    ) -> None:
        ordered = sorted(items, key=ret)
        self._rets = [ret(each) for each in ordered]
        self._greatest: list[Item] = list(accumulate(ordered, partial(max, key=rank)))

    def before(self, moment: int) -> Item | None:
        at = bisect_left(self._rets, moment)
        return self._greatest[at - 1] if at else None
