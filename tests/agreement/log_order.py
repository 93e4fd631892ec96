"""Whether the records of a key have an order, by trying them all out.

Each record is written, each is read, and each end is seen at a moment of its own within its
operation. What is written is at the end; offsets may be left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from jepsen_like.checkers.operations import NEVER
from jepsen_like.histories.history import Kind
from tests.agreement.log_truth import Logs, Sent

__all__ = ["has_order"]


@dataclass(frozen=True, slots=True)
class _Event:
    """One record is written or read, or one end is seen, at some moment of its operation."""

    what: str
    call: int
    ret: int
    offset: int
    value: str = ""


def has_order(logs: Logs, key: str, *, is_idempotent: bool) -> bool:
    """Is there an order in which each record was written before it was read, at the end?"""
    events = [_Event("end", of.call, of.ret, end) for of, its, end in logs.ends if its == key]
    read = [each for each in logs.read if each.key == key]
    events += [_Event("read", each.of.call, each.of.ret, each.offset, each.value) for each in read]
    for sent in logs.sent:
        if sent.key == key and sent.of.kind is not Kind.FAIL:
            events += _written(
                sent, {each.offset for each in read if each.value == sent.value}, is_idempotent
            )
    return _can_end(frozenset(events), 0, frozenset(), set())


def _written(sent: Sent, found: set[int], is_idempotent: bool) -> Iterator[_Event]:
    offset, ret = sent.offset if sent.is_acknowledged else None, sent.of.ret
    if offset is not None:
        yield _Event("send", sent.of.call, ret, offset, sent.value)
    if is_idempotent:
        others = found if offset is None else set()
        yield from (_Event("send", sent.of.call, ret, at, sent.value) for at in sorted(others)[:1])
    else:
        others = found - {offset}
        yield from (_Event("send", sent.of.call, NEVER, at, sent.value) for at in others)


def _can_end(
    left: frozenset[_Event], end: int, there: frozenset[tuple[int, str]], hopeless: set[object]
) -> bool:
    """`there`: what was written so far, below `end`."""
    first_ret = min((each.ret for each in left), default=NEVER)
    if first_ret == NEVER:
        return True
    if (left, end) in hopeless:
        return False
    callable_now = [each for each in left if each.call < first_ret]
    for each in callable_now:
        if each.what == "read" and (each.offset, each.value) in there:
            return _can_end(left - {each}, end, there, hopeless)
    for each in callable_now:
        if each.what == "read" or each.offset < end:
            continue
        is_sent = each.what == "send"
        new = there | {(each.offset, each.value)} if is_sent else there
        if _can_end(left - {each}, each.offset + is_sent, new, hopeless):
            return True
    hopeless.add((left, end))
    return False
