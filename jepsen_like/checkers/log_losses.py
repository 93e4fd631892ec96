"""What was acknowledged, or seen, and is there no more.

- `lost-write`: an acknowledged value that nobody read, below an offset that somebody read.
- `unseen`: an acknowledged value that nobody read, although a reader that began at the beginning
  after the acknowledgement came to the end. If no reader did, nobody can know: undecided.
- `vanished`: ours, since a value that one reader saw is neither of the two for Jepsen: it was
  acknowledged or read, and a later reader that went from the beginning to the end did not find it.

Source: Jepsen's kafka workload. A log must keep everything: no retention, no compaction.
"""

from dataclasses import dataclass

import numpy as np

from jepsen_like.checkers.log_columns import OK, UNKNOWN, Column, LogColumns
from jepsen_like.checkers.pairing import Pairing
from jepsen_like.checkers.places import evidence
from jepsen_like.checkers.reporting import Told, report
from jepsen_like.verdict import Finding

__all__ = ["doubts", "highest_reader", "lost_writes", "unread", "unseen", "vanished"]

_ACKNOWLEDGED = -2  # no session, and not UNKNOWN either


def lost_writes(log: LogColumns) -> list[Finding]:
    reader = highest_reader(log)
    rows = [row for row in unread(log) if _is_below(log, int(row), reader)]

    def tell(row: int) -> Told:
        value, offset = log.values[log.sends.value[row]], log.sends.offset[row]
        at = reader[int(log.sends.key[row])]
        detail = (
            f"{value!r} was acknowledged at offset {offset} and never read, "
            f"though offset {log.reads.offset[at]} was"
        )
        return detail, evidence([int(log.sends.operation[row]), int(log.reads.operation[at])])

    return report("lost-write", rows, lambda row: log.keys[log.sends.key[row]], tell)


def unseen(log: LogColumns) -> list[Finding]:
    """Those that are not lost writes."""
    latest = _latest_reading(log)
    rows = [row for row in _neither_read_nor_lost(log) if _is_due(log, row, latest)]

    def tell(row: int) -> Told:
        value, offset = log.values[log.sends.value[row]], log.sends.offset[row]
        reading = latest[int(log.sends.key[row])]
        where = "" if offset == UNKNOWN else f" at offset {offset}"
        detail = f"{value!r} was acknowledged{where} and never read, though all was read later"
        ops = int(log.sends.operation[row]), int(log.ends.operation[reading])
        return detail, evidence(ops)

    return report("unseen", rows, lambda row: log.keys[log.sends.key[row]], tell)


def doubts(log: LogColumns) -> dict[str, str]:
    """Keys of which nobody can know whether something was lost, and why."""
    latest = _latest_reading(log)
    count: dict[str, int] = {}
    for row in _neither_read_nor_lost(log):
        if not _is_due(log, row, latest):
            key = log.keys[log.sends.key[row]]
            count[key] = count.get(key, 0) + 1
    return {
        key: f"{number} acknowledged values were not read, and no reader that began after them "
        "came to the end"
        for key, number in count.items()
    }


def vanished(log: LogColumns) -> list[Finding]:
    """What was there before a reading of the whole log began, and this one did not find."""
    there = _There.of(log)
    rows: list[int] = []
    reading_of: dict[int, int] = {}
    by_key = np.argsort(there.key, kind="stable")
    for reading in np.flatnonzero(log.ends.start != UNKNOWN).tolist():
        for row in _missing(log, there, reading, by_key):
            if row not in reading_of:
                rows.append(row)
                reading_of[row] = reading

    def tell(row: int) -> Told:
        value, offset = log.values[there.value[row]], there.offset[row]
        how = "acknowledged" if there.session[row] == _ACKNOWLEDGED else "read"
        where = "" if offset == UNKNOWN else f" at offset {offset}"
        detail = f"{value!r} was {how}{where}, and later the whole log read without it"
        ops = int(there.operation[row]), int(log.ends.operation[reading_of[row]])
        return detail, evidence(ops)

    return report("vanished", rows, lambda row: log.keys[there.key[row]], tell)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _There:
    """Who knows of a value that it is in the log: its readers, and its sender by the answer."""

    operation: Column
    key: Column
    session: Column  # of a reader; else _ACKNOWLEDGED
    ret: Column
    value: Column
    offset: Column

    @classmethod
    def of(cls, log: LogColumns) -> "_There":
        """Acknowledged values that nobody read are `unseen` or `lost-write`."""
        sends, reads = log.sends, log.reads
        acknowledged = np.setdiff1d(np.flatnonzero(sends.kind == OK), unread(log))
        session = np.full(len(acknowledged), _ACKNOWLEDGED, dtype=np.int64)
        return cls(
            operation=np.concatenate([reads.operation, sends.operation[acknowledged]]),
            key=np.concatenate([reads.key, sends.key[acknowledged]]),
            session=np.concatenate([reads.session, session]),
            ret=np.concatenate([reads.ret, sends.ret[acknowledged]]),
            value=np.concatenate([reads.value, sends.value[acknowledged]]),
            offset=np.concatenate([reads.offset, sends.offset[acknowledged]]),
        )


def _missing(log: LogColumns, there: _There, reading: int, by_key: Column) -> list[int]:
    ends = log.ends
    begin, end = np.searchsorted(there.key[by_key], [ends.key[reading], ends.key[reading] + 1])
    mine = by_key[begin:end]
    found = there.value[mine[there.session[mine] == ends.session[reading]]]
    before = mine[there.ret[mine] < ends.start[reading]]
    missing = before[~np.isin(there.value[before], found)]
    _, first = np.unique(there.value[missing], return_index=True)
    rows: list[int] = missing[first].tolist()
    return rows


def unread(log: LogColumns) -> Column:
    """Rows of acknowledged sends that no poll ever returned."""
    sends, reads = log.sends, log.reads
    pairing = Pairing.of(sends.key, sends.value, reads.key, reads.value)
    read = pairing.pairs(reads.key, reads.value)
    sent = pairing.pairs(sends.key, sends.value)
    return np.flatnonzero((sends.kind == OK) & ~np.isin(sent, read))


def _neither_read_nor_lost(log: LogColumns) -> list[int]:
    reader = highest_reader(log)
    return [row for row in unread(log).tolist() if not _is_below(log, row, reader)]


def highest_reader(log: LogColumns) -> dict[int, int]:
    """Of each key the read of the highest offset; a value at two offsets counts at its first."""
    reads = log.reads
    pairing = Pairing.of(reads.key, reads.value)
    order = np.lexsort((reads.offset, pairing.pairs(reads.key, reads.value)))
    pairs = pairing.pairs(reads.key, reads.value)[order]
    first = np.sort(order[np.diff(pairs, prepend=-1) != 0])
    by_height = first[np.lexsort((reads.offset[first], reads.key[first]))]
    last = by_height[np.diff(reads.key[by_height], append=-1) != 0]
    return dict(zip(reads.key[last].tolist(), last.tolist(), strict=True))


def _is_below(log: LogColumns, row: int, reader: dict[int, int]) -> bool:
    at = reader.get(int(log.sends.key[row]))
    offset = int(log.sends.offset[row])
    return at is not None and offset != UNKNOWN and offset <= int(log.reads.offset[at])


def _latest_reading(log: LogColumns) -> dict[int, int]:
    """Of each key the row of the reading from beginning to end that began last."""
    complete = np.flatnonzero(log.ends.start != UNKNOWN)
    order = complete[np.argsort(log.ends.start[complete], kind="stable")]
    return dict(zip(log.ends.key[order].tolist(), order.tolist(), strict=True))


def _is_due(log: LogColumns, row: int, latest: dict[int, int]) -> bool:
    reading = latest.get(int(log.sends.key[row]))
    return reading is not None and bool(log.ends.start[reading] > log.sends.ret[row])
