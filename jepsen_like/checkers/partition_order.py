"""Is each partition linearizable? An append-only log with offsets, exactly, in one pass.

Offsets become visible in their order (`visibility`). The moment of offset k is bounded from below
by the call of the append at k, and by the call of every read that saw the log end at k; from above
by the return of that append, of every read of k, and of every read that saw the log end at k + 1.
The log is linearizable if and only if such moments exist.

Offsets that nobody saw written are holes. Kafka's logs have legal ones (markers of transactions,
compaction). Where there can be none (`dense`), an append whose end nobody knows must have filled
each of them: the i-th such append to begin must begin before the i-th deadline of a hole.

That offset -> value and value -> offset are functions, and that every value was sent, is checked
elsewhere: `log_records`. Source: Gibbons and Korach, "Testing shared memories", for the method.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from jepsen_like.checkers.log_columns import FAIL, INFO, OK, UNKNOWN, LogColumns
from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.pairing import first_rows
from jepsen_like.checkers.reporting import Told, evidence, invocation, report
from jepsen_like.checkers.verdict import Finding
from jepsen_like.checkers.visibility import Bounds, Rows

__all__ = [
    "bounds_of",
    "out_of_order",
    "too_late",
    "unfilled_holes",
    "unlocated_acknowledged",
]


def out_of_order(log: LogColumns) -> list[Finding]:
    return too_late(bounds_of(log), log.keys)


def too_late(bounds: Bounds, keys: Sequence[str]) -> list[Finding]:
    late, forbidden_by = bounds.broken()

    def tell(at: int) -> Told:
        lower, upper = int(forbidden_by[at]), int(late[at])
        ops = (int(bounds.lower_by[lower]), int(bounds.upper_by[upper]))
        detail = (
            f"offset {bounds.place[upper]} was there when operation "
            f"{invocation(ops[1])} ended, and offset {bounds.place[lower]} came only "
            f"after operation {invocation(ops[0])} had begun, which was later"
        )
        return detail, evidence(ops)

    return report("not-linearizable", range(len(late)), lambda at: keys[bounds.key[late[at]]], tell)


def unfilled_holes(log: LogColumns) -> list[Finding]:
    """Only for logs that cannot have holes, and where every acknowledgement told its offset."""
    bounds = bounds_of(log)
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
    holes = np.setdiff1d(np.arange(needed.max() + 1), filled)
    deadlines = np.minimum.accumulate(uppers[::-1])[::-1][np.searchsorted(offsets, holes)]
    seen = np.isin(sends.value, reads.value[reads.key == key])
    free = (sends.key == key) & (sends.kind == INFO) & ~seen
    calls = np.sort(sends.call[free])[: holes.size]
    late = np.flatnonzero(calls >= np.sort(deadlines)[: calls.size])
    if late.size or calls.size < holes.size:
        which = int(late[0]) if late.size else calls.size
        yield Finding(
            rule="unfilled-hole",
            object=log.keys[key],
            detail=f"nothing that was sent in time can be at offset {holes[which]}",
        )


def bounds_of(log: LogColumns) -> Bounds:
    """Bounds in any part of a log: those of its parts together are those of the whole."""
    sends, reads, ends = log.sends, log.reads, log.ends
    ended = ends.end != UNKNOWN
    before = ended & (ends.end > 0)
    told = log.is_told
    return Bounds.of_parts(
        lower=[
            (sends.key[told], sends.offset[told], sends.call[told], sends.operation[told]),
            _calls_of_what_was_read(log),
            (ends.key[ended], ends.end[ended], ends.call[ended], ends.operation[ended]),
        ],
        upper=[
            (sends.key[told], sends.offset[told], sends.ret[told], sends.operation[told]),
            (reads.key, reads.offset, reads.ret, reads.operation),
            (ends.key[before], ends.end[before] - 1, ends.ret[before], ends.operation[before]),
        ],
    )


def _calls_of_what_was_read(log: LogColumns) -> Rows:
    """A value that is read was appended after the call of its send, whatever became of that."""
    sends, reads = log.sends, log.reads
    able = np.flatnonzero(sends.kind != FAIL)
    codes = log.by_value
    at = first_rows(codes.sends[able], codes.size)[codes.reads]
    found = np.flatnonzero(at >= 0)
    row = able[at[found]]
    return reads.key[found], reads.offset[found], sends.call[row], sends.operation[row]
