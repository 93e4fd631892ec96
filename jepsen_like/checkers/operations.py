"""Operations as intervals: an invocation and its completion become one value.

Time is the position in the history, which is the order in which things were written down: an
operation was written before its request left, and after its answer came, so that its effect lies
strictly between `call` and `ret`. No two positions are equal, which a clock cannot promise.

An operation whose end nobody knows (`info`, or open when the history ends) may take effect at any
later time: its `ret` is NEVER.

`exact` tells values apart by what they are, where Python's equality does not: 1, 1.0 and True are
one key of a dict, and three values of a history. NaN equals nothing in Python, and itself here.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import Any, TypeVar

from jepsen_like.histories.history import NEMESIS, Kind, MalformedHistory, Op, Value

__all__ = [
    "NEVER",
    "NO_LINE",
    "OBSERVE",
    "AsWritten",
    "Operation",
    "exact",
    "lines_of",
    "malformed",
    "not_of",
    "operations",
    "overtaken",
    "pair_of",
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
                yield _interval(*pending[op.process])
            pending[op.process] = position, op
        elif op.process in pending:
            yield _interval(*pending.pop(op.process), position, op)
    for call, op in sorted(pending.values(), key=itemgetter(0)):
        yield _interval(call, op)


def _interval(call: int, invoked: Op, ret: int = NEVER, completed: Op | None = None) -> Operation:
    extra = invoked.extra
    if completed is not None and completed.extra:
        extra = {**extra, **completed.extra}
    return Operation(
        process=invoked.process,
        f=invoked.f,
        kind=Kind.INFO if completed is None else completed.kind,
        argument=invoked.value,
        result=None if completed is None else completed.value,
        call=call,
        ret=NEVER if completed is None or completed.kind is Kind.INFO else ret,
        index=invoked.index,
        ret_index=None if completed is None else completed.index,
        extra=extra,
    )


def malformed(operation: Operation, what: str) -> MalformedHistory:
    """`what` the operation should look like: "a commit of a group"."""
    return MalformedHistory(
        f"operation {operation.index}: not what {what} looks like: "
        f"{operation.argument!r:.100} -> {operation.result!r:.100}"
    )


def not_of(operation: Operation, what: str) -> MalformedHistory:
    """`what` has no such operation: "a register"."""
    return MalformedHistory(f"operation {operation.index}: {what} has no {operation.f!r}")


def pair_of(value: Value) -> tuple[Value, Value]:
    """Raises ValueError: a text or a mapping is no pair, though it may be taken apart."""
    match value:
        case [first, second]:
            return first, second
    raise ValueError(value)


@dataclass(frozen=True, slots=True)
class AsWritten:
    """Something that equals numbers of other kinds, as it is written."""

    text: str

    def __repr__(self) -> str:
        return self.text


def exact(value: Value) -> Hashable:
    """Hashable, and equal where the value is the same. Raises TypeError: a mapping cannot be."""
    match value:
        case bool() | float():
            return AsWritten(repr(value))
        case list() | tuple():
            return tuple(map(exact, value))
        case _:
            hash(value)
            told: Hashable = value
            return told


Item = TypeVar("Item")


def overtaken(
    items: Sequence[Item], *, of: Callable[[Item], Operation], rank: Callable[[Item], int]
) -> Iterator[tuple[Item, Item]]:
    """Items that began after one of a greater rank had ended, each behind the greatest of those.

    `of`: the operation of an item.
    """
    ordered = sorted(items, key=lambda each: of(each).ret)
    rets = [of(each).ret for each in ordered]
    greatest = list(accumulate(ordered, partial(max, key=rank)))
    for each in items:
        ended = bisect_left(rets, of(each).call)
        if ended and rank(each) < rank(greatest[ended - 1]):
            yield greatest[ended - 1], each
