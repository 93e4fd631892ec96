"""The verdict on sends and polls: which rules of the log workload look at what.

    history -> operations -> columns -> records, losses, sessions, order -> verdict

Keys are judged together, in passes over columns; a finding names its key. Cycles of transactions
(G0, G1c) need edges between transactions: see `transactions`.

A log that is too large for one place is judged in pieces:

    by value     all sends and reads of some values, and every whole reading: was each of them
                 sent, is it at one offset, did it stay
    losses       the sends that nobody read, with the highest read of each key: is one lost
    by offset    what was seen at some offsets that follow one another, and the bounds of their
                 moments, with what earlier pieces carry on: one value each, and in order
    by session   reads and sends of one process after the other: did it go back, did it skip

A piece is all that a rule looks at, so that the same rules judge it that judge a whole log. What
reaches over the border of two pieces is small, and is carried on: the latest lower bound, the last
offset that anybody saw, the last row of a session. That a poll skipped nothing takes two pieces: it
jumped over offsets (by session), and nobody saw one of them (by offset).
"""

from collections.abc import Mapping

import numpy as np

from jepsen_like.checkers import log_losses, log_records, log_sessions
from jepsen_like.checkers.log_columns import Column, LogColumns
from jepsen_like.checkers.verdict import Finding, Verdict
from jepsen_like.checkers.zones import Bounds

__all__ = [
    "check_log_columns",
    "gaps",
    "judge_losses",
    "judge_offsets",
    "judge_values",
    "judge_walk",
    "jumps",
    "skips",
]


def check_log_columns(log: LogColumns, *, is_idempotent: bool = True) -> Verdict:
    """A producer that is not idempotent may leave a value at two offsets."""
    findings = [
        *log_losses.lost_writes(log),
        *log_losses.unseen(log),
        *log_losses.vanished(log),
        *log_records.inconsistent_offsets(log),
        *_of_values(log, is_idempotent=is_idempotent),
        *log_sessions.polls_out_of_order(log),
        *log_sessions.sends_out_of_order(log),
        *log_records.out_of_order(log, is_idempotent=is_idempotent),
    ]
    readings = {"readings to the end": int((log.ends.start >= 0).sum())}
    counts = _counts(log, readings, is_idempotent=is_idempotent)
    return Verdict.of(findings, counts, objects=log.keys, doubts=log_losses.doubts(log))


def judge_values(log: LogColumns, *, is_idempotent: bool) -> Verdict:
    """All sends and reads of some values; of `ends` the whole readings of these keys."""
    findings = [*log_losses.vanished(log), *_of_values(log, is_idempotent=is_idempotent)]
    return Verdict.of(findings, _counts(log, {}, is_idempotent=is_idempotent))


def _of_values(log: LogColumns, *, is_idempotent: bool) -> list[Finding]:
    return [
        *(log_records.duplicates(log) if is_idempotent else ()),
        *(log_records.acknowledged_elsewhere(log) if is_idempotent else ()),
        *log_records.aborted_reads(log),
        *log_records.phantoms(log),
        *log_records.precommitted_reads(log),
    ]


def _counts(log: LogColumns, more: Mapping[str, int], *, is_idempotent: bool) -> dict[str, int]:
    counts = {"sends": len(log.sends.key), "records polled": len(log.reads.key), **more}
    if not is_idempotent:
        counts["duplicates, allowed"] = log_records.count_duplicates(log)
    return counts


def judge_losses(log: LogColumns) -> Verdict:
    """Sends that nobody read; of `reads` the highest of each key, of `ends` the whole readings."""
    findings = [*log_losses.lost_writes(log), *log_losses.unseen(log)]
    return Verdict.of(findings, doubts=log_losses.doubts(log))


def judge_offsets(seen: LogColumns, bounds: Bounds) -> Verdict:
    """`seen` has as reads what was at these offsets; `bounds` begins with what is carried on."""
    findings = [
        *log_records.inconsistent_offsets(seen),
        *log_records.too_late(bounds, seen.keys),
    ]
    return Verdict.of(findings)


def judge_walk(log: LogColumns) -> Verdict:
    """Reads and located sends that follow one another; whether a jump skipped is not known yet."""
    findings = [*log_sessions.polls_out_of_order(log), *log_sessions.sends_out_of_order(log)]
    return Verdict.of(each for each in findings if not each.rule.endswith("poll-skip"))


def gaps(key: Column, offset: Column) -> tuple[Column, Column, Column]:
    """Keys with two offsets that somebody saw, and nobody one between them."""
    order = np.lexsort((offset, key))
    key, offset = key[order], offset[order]
    before = np.flatnonzero((np.diff(key) == 0) & (np.diff(offset) > 1))
    return key[before], offset[before], offset[before + 1]


def jumps(log: LogColumns) -> tuple[Column, Column]:
    """Rows of reads, one after the other in a session, that leave offsets out between them."""
    reads, order = log.reads, log.in_sessions
    before, after = order[:-1], order[1:]
    is_jump = (reads.session[before] == reads.session[after]) & (
        reads.offset[after] > reads.offset[before] + 1
    )
    return before[is_jump], after[is_jump]


def skips(log: LogColumns) -> list[Finding]:
    """`log` has as reads jumps over offsets that somebody saw, each a session of two reads."""
    return log_sessions.polls_out_of_order(log, has_gaps=False)
