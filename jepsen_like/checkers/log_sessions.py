"""What one process sees of its own polls and sends: forward, one by one.

Offsets are compared by their index among all offsets of the key that anybody saw, so that gaps
(markers of transactions, what compaction took) skip nothing. Rules, with Jepsen's names:

- `poll-skip`, `nonmonotonic-poll`: from one poll of a process to its next, on one key;
- `int-poll-skip`, `int-nonmonotonic-poll`: from record to record within one poll;
  whoever saw what was skipped is evidence, too;
- `nonmonotonic-send`: from one send of a process to its next, on one key;
- `int-nonmonotonic-send`: from send to send within one transaction.

`int-send-skip` is for who wants to count it: within one transaction, sends that do not lie next to
each other. Others may send in between, and nothing promises otherwise.
Source: Jepsen's kafka workload.
"""

import numpy as np

from jepsen_like.checkers.log_columns import FAIL, UNKNOWN, Column, LogColumns, Mask
from jepsen_like.checkers.pairing import Pairing, order_of
from jepsen_like.checkers.verdict import Finding, Told, report

__all__ = ["internal_send_skips", "located", "polls_out_of_order", "sends_out_of_order"]

_SENDS = ("nonmonotonic-send", "int-nonmonotonic-send")


def polls_out_of_order(log: LogColumns, *, has_gaps: bool = True) -> list[Finding]:
    """Without gaps every offset counts as seen by somebody."""
    reads = log.reads
    order = log.in_sessions
    index = _ranks(log)[log.by_offset.reads] if has_gaps else reads.offset
    return _steps_out_of_order(
        log,
        kind="poll",
        before=order[:-1],
        after=order[1:],
        stretch=reads.session,
        key=reads.key,
        operation=reads.operation,
        offset=reads.offset,
        index=index,
    )


def sends_out_of_order(log: LogColumns) -> list[Finding]:
    return [each for each in _sends(log) if each.rule in _SENDS]


def internal_send_skips(log: LogColumns) -> list[Finding]:
    return [each for each in _sends(log) if each.rule == "int-send-skip"]


def _sends(log: LogColumns) -> list[Finding]:
    sends = log.sends
    offset = located(log)
    known = np.flatnonzero((sends.kind != FAIL) & (offset != UNKNOWN))
    stretch = Pairing.of(sends.process, sends.key).pairs(sends.process, sends.key)
    order = known[order_of(stretch[known])]
    return _steps_out_of_order(
        log,
        kind="send",
        before=order[:-1],
        after=order[1:],
        stretch=stretch,
        key=sends.key,
        operation=sends.operation,
        offset=offset,
        index=_ranks(log)[_codes(log, offset)],
    )


def _steps_out_of_order(
    log: LogColumns,
    *,
    kind: str,
    before: Column,
    after: Column,
    stretch: Column,
    key: Column,
    operation: Column,
    offset: Column,
    index: Column,
) -> list[Finding]:
    neighbours = stretch[before] == stretch[after]
    before, after = before[neighbours], after[neighbours]
    step = index[after] - index[before]
    is_internal = operation[before] == operation[after]

    def tell(at: int) -> Told:
        rows = before[at], after[at]
        first, then = int(offset[rows[0]]), int(offset[rows[1]])
        skipped = int(step[at]) - 1
        over = f", skipping {skipped} that others saw" if skipped > 0 else ""
        shown = [operation[each] for each in rows]
        if kind == "poll" and skipped > 0:
            shown += _who_saw(log, int(key[rows[0]]), after=first, before=then)
        return f"a {kind} at offset {then} followed one at {first}{over}", shown

    def reported(rule: str, broken: Column) -> list[Finding]:
        return report(rule, log.keys, key[before[broken]], lambda at: tell(int(broken[at])))

    return [
        finding
        for rule, broken in _rules(kind, step, is_internal).items()
        for finding in reported(rule, np.flatnonzero(broken))
    ]


def _rules(kind: str, step: Column, is_internal: Mask) -> dict[str, Mask]:
    """Which of these steps break which. From one send to the next others may send, too."""
    rules: dict[str, Mask] = {
        f"nonmonotonic-{kind}": (step < 1) & ~is_internal,
        f"int-nonmonotonic-{kind}": (step < 1) & is_internal,
        f"int-{kind}-skip": (step > 1) & is_internal,
    }
    if kind == "poll":
        rules["poll-skip"] = (step > 1) & ~is_internal
    return rules


def _who_saw(log: LogColumns, key: int, *, after: int, before: int) -> list[int]:
    """The place of an operation that was told of an offset between these; none if none is here."""
    for part, is_known in ((log.reads, True), (log.sends, log.is_told)):
        is_between = (part.key == key) & (part.offset > after) & (part.offset < before)
        found = np.flatnonzero(is_between & is_known)
        if len(found):
            return [int(part.operation[found[0]])]
    return []


def _ranks(log: LogColumns) -> Column:
    """Ranks each offset among all offsets of its key that anybody saw.

    A piece of a log may have the offset of a send of unknown end without the read that showed it.
    """
    is_known = np.zeros(log.by_offset.size, dtype=bool)
    is_known[log.by_offset.reads] = True
    is_located = (log.sends.kind != FAIL) & (log.sends.offset != UNKNOWN)
    is_known[log.by_offset.sends[is_located]] = True
    return np.cumsum(is_known)


def _codes(log: LogColumns, offset: Column) -> Column:
    """Codes of sends at these offsets: their own, or those of what was read."""
    found = np.flatnonzero(log.sends.offset != offset)
    codes = log.by_offset.sends.copy()
    codes[found] = log.by_offset.reads[log.first_read[log.by_value.sends[found]]]
    return codes


def located(log: LogColumns) -> Column:
    """The offset of each send: as acknowledged, else where it was read."""
    offset = log.sends.offset.copy()
    unknown = np.flatnonzero(offset == UNKNOWN)
    at = log.first_read[log.by_value.sends[unknown]]
    offset[unknown[at >= 0]] = log.reads.offset[at[at >= 0]]
    return offset
