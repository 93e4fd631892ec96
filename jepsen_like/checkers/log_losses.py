"""What was acknowledged, or seen, and is there no more.

- `lost-write`: an acknowledged value that nobody read, below an offset that somebody read. A reader
  that sought another place than the beginning speaks only of what lies behind its first record.
- `unseen`: an acknowledged value that nobody read, although a reader that began at the beginning
  after the acknowledgement came to the end. If no reader did, nobody can know: undecided.
- `vanished`: ours, since a value that one reader saw is neither of the two for Jepsen: it was
  acknowledged or read, and a later reader that went from the beginning to the end did not find it.

Source: Jepsen's kafka workload. A log must keep everything: no retention, no compaction.
"""

import numpy as np

from jepsen_like.checkers.log_columns import OK, UNKNOWN, Column, LogColumns, Mask
from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.verdict import Finding, Told, report

__all__ = ["doubts", "lost_writes", "unseen", "vanished"]


def lost_writes(log: LogColumns) -> list[Finding]:
    is_passed, sends, reads = _is_passed(log), log.sends, log.reads
    rows, readers = log.unread[is_passed], log.passing[is_passed]

    def tell(at: int) -> Told:
        row, reader = rows[at], readers[at]
        detail = (
            f"{log.values[sends.value[row]]!r} was acknowledged at offset {sends.offset[row]} and "
            f"never read, though offset {reads.offset[reader]} was"
        )
        return detail, (sends.operation[row], reads.operation[reader])

    return report("lost-write", log.keys, sends.key[rows], tell)


def unseen(log: LogColumns) -> list[Finding]:
    """The findings that are not lost writes."""
    latest, sends = _latest_reading(log), log.sends
    rows = log.unread[~_is_passed(log)]
    rows = rows[_is_due(log, rows, latest)]

    def tell(at: int) -> Told:
        value, offset = log.values[sends.value[rows[at]]], sends.offset[rows[at]]
        where = "" if offset == UNKNOWN else f" at offset {offset}"
        detail = f"{value!r} was acknowledged{where} and never read, though all was read later"
        reading = _read_whole(log, latest[sends.key[rows[at]]])
        return detail, (sends.operation[rows[at]], *reading)

    return report("unseen", log.keys, sends.key[rows], tell)


def doubts(log: LogColumns) -> dict[str, str]:
    """Keys of which nobody can know whether something was lost, and why."""
    rows = log.unread[~_is_passed(log)]
    rows = rows[~_is_due(log, rows, _latest_reading(log))]
    keys, counts = np.unique(log.sends.key[rows], return_counts=True)
    return {
        log.keys[key]: f"{number} acknowledged values were not read, and no reader that began "
        "after them came to the end"
        for key, number in zip(keys.tolist(), counts.tolist(), strict=True)
    }


def vanished(log: LogColumns) -> list[Finding]:
    """Values that were there before a reading of the whole log began, and that it did not find."""
    readings = np.flatnonzero(log.ends.start != UNKNOWN).tolist()
    if not readings:
        return []
    due_from, begins = _known_from(log), _begins(log)
    sessions = log.reads.session[log.in_sessions]
    ends = log.ends
    reading_of: dict[int, int] = {}  # by the number of the value
    for reading in readings:
        mine = slice(*begins[ends.key[reading] :][:2])
        is_missing = due_from[mine] < ends.start[reading]
        session = ends.session[reading]
        rows = log.in_sessions[slice(*np.searchsorted(sessions, [session, session + 1]))]
        rows = rows[log.reads.ret[rows] <= ends.ret[reading]]  # not what it read when it went on
        is_missing[log.by_value.reads[rows] - mine.start] = False
        for value in (np.flatnonzero(is_missing) + mine.start).tolist():
            reading_of.setdefault(value, reading)

    values, found = list(reading_of), list(reading_of.values())

    def tell(at: int) -> Told:
        return _told(log, values[at], found[at])

    return report("vanished", log.keys, ends.key[np.array(found, dtype=np.int64)], tell)


def _known_from(log: LogColumns) -> Column:
    """For each value: the first moment at which somebody surely knew that it is there.

    A reader, or its sender by the answer; acknowledged values that nobody read are `unseen` or
    `lost-write`.
    """
    codes = log.by_value
    known = np.full(codes.size, NEVER)
    np.minimum.at(known, codes.reads, log.reads.ret)
    sent = np.flatnonzero(log.sends.kind == OK)
    np.minimum.at(known, codes.sends[sent], log.sends.ret[sent])
    known[log.first_read < 0] = NEVER
    return known


def _begins(log: LogColumns) -> Column:
    """Where the numbers of each key's values begin; at the end, where the last ones end."""
    codes = log.by_value
    begins = np.full(len(log.keys) + 1, codes.size)
    np.minimum.at(begins, log.reads.key, codes.reads)
    np.minimum.at(begins, log.sends.key, codes.sends)
    return np.minimum.accumulate(begins[::-1])[::-1]


def _told(log: LogColumns, number: int, reading: int) -> Told:
    for how, part, of in (
        ("read", log.reads, log.by_value.reads),
        ("acknowledged", log.sends, log.by_value.sends),
    ):
        rows = np.flatnonzero((of == number) & (part.ret < log.ends.start[reading]))
        if how == "acknowledged":
            rows = rows[log.sends.kind[rows] == OK]
        if len(rows):
            row = rows[0]
            value, offset = log.values[part.value[row]], part.offset[row]
            where = "" if offset == UNKNOWN else f" at offset {offset}"
            detail = f"{value!r} was {how}{where}, and later the whole log read without it"
            return detail, (part.operation[row], *_read_whole(log, reading))
    raise AssertionError(number)


def _read_whole(log: LogColumns, reading: int) -> list[int]:
    """Where a reading began, and where it came to the end."""
    found = int(log.ends.assigned[reading]), int(log.ends.operation[reading])
    return [each for each in found if each != UNKNOWN]


def _is_passed(log: LogColumns) -> Mask:
    """For each unread send: has some reader passed its offset?"""
    is_passed: Mask = log.passing >= 0
    return is_passed


def _latest_reading(log: LogColumns) -> Column:
    """For each key: the row of the last reading from beginning to end; -1: none."""
    complete = np.flatnonzero(log.ends.start != UNKNOWN)
    order = complete[np.argsort(log.ends.start[complete], kind="stable")]
    latest = np.full(len(log.keys), -1)
    latest[log.ends.key[order]] = order
    return latest


def _is_due(log: LogColumns, rows: Column, latest: Column) -> Mask:
    reading = latest[log.sends.key[rows]]
    if not len(log.ends.start):
        return np.zeros(len(rows), dtype=bool)
    is_due: Mask = (reading >= 0) & (log.ends.start[reading] > log.sends.ret[rows])
    return is_due
