"""Is each key a linearizable append-only log, and one without gaps?

Kafka's logs may have gaps (markers of transactions, compaction), so that no rule of the product
asks for this; a simulated object has none. An append whose end nobody knows must then have filled
each gap: the i-th such append to begin must begin before the i-th deadline of a gap. Exact, but
where an acknowledgement does not tell its offset and gaps must be filled.
"""

from collections.abc import Iterator

import numpy as np

from jepsen_like.checkers import log_records
from jepsen_like.checkers.log_columns import INFO, OK, UNKNOWN, LogColumns
from jepsen_like.checkers.log_records import bounds_of
from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.verdict import Finding, Verdict, compose
from jepsen_like.checkers.zones import Bounds

__all__ = ["dense_linearizability", "linearizability"]


def linearizability(log: LogColumns) -> Verdict:
    """Is each key a linearizable append-only log? Holes are allowed."""
    findings = [
        *log_records.inconsistent_offsets(log),
        *log_records.duplicates(log),
        *log_records.acknowledged_elsewhere(log),
        *log_records.aborted_reads(log),
        *log_records.phantoms(log),
        *log_records.out_of_order(log, is_idempotent=True),
    ]
    return Verdict.of(findings, objects=log.keys)


def dense_linearizability(log: LogColumns) -> Verdict:
    """The same of a log that cannot have gaps."""
    unlocated = unlocated_acknowledged(log)
    doubts = dict.fromkeys(sorted(unlocated), "an acknowledgement did not tell its offset")
    return compose([linearizability(log), Verdict.of(unfilled_gaps(log), doubts=doubts)])


def unfilled_gaps(log: LogColumns) -> list[Finding]:
    """Only for logs that cannot have gaps, and where every acknowledgement told its offset."""
    bounds = bounds_of(log, is_idempotent=True)
    return [finding for key in range(len(log.keys)) for finding in _unfilled(log, bounds, key)]


def unlocated_acknowledged(log: LogColumns) -> set[str]:
    """Keys with an acknowledged value whose offset nobody ever told."""
    located = set(zip(log.reads.key.tolist(), log.reads.value.tolist(), strict=True))
    sends = log.sends
    rows = np.flatnonzero((sends.kind == OK) & (sends.offset == UNKNOWN))
    pairs = ((int(sends.key[row]), int(sends.value[row])) for row in rows)
    return {log.keys[key] for key, value in pairs if (key, value) not in located}


def _unfilled(log: LogColumns, bounds: Bounds, key: int) -> Iterator[Finding]:
    mine = bounds.key == key
    offsets, uppers = bounds.place[mine], bounds.upper[mine]
    needed = offsets[uppers < NEVER]
    if not needed.size:
        return
    sends, reads = log.sends, log.reads
    filled = np.concatenate([reads.offset[reads.key == key], sends.offset[sends.key == key]])
    gaps = np.setdiff1d(np.arange(needed.max() + 1), filled)
    deadlines = np.minimum.accumulate(uppers[::-1])[::-1][np.searchsorted(offsets, gaps)]
    seen = np.isin(sends.value, reads.value[reads.key == key])
    free = (sends.key == key) & (sends.kind == INFO) & ~seen
    calls = np.sort(sends.call[free])[: gaps.size]
    late = np.flatnonzero(calls >= np.sort(deadlines)[: calls.size])
    if late.size or calls.size < gaps.size:
        which = int(late[0]) if late.size else calls.size
        yield Finding(
            rule="unfilled-gap",
            object=log.keys[key],
            detail=f"nothing that was sent in time can be at offset {gaps[which]}",
        )
