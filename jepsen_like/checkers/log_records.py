"""What records of a log must be: one value at one offset, each of them sent, and in order.

The names are Jepsen's where it has one. `acknowledged-elsewhere` is ours: the acknowledgement names
an offset, and readers find the value at another one only.

A producer that is not idempotent may write a value twice, when it sends again what it was not
answered. Then `duplicate` is no violation, nor is `acknowledged-elsewhere`: nobody may have read so
far yet. All other rules hold. Source: Jepsen's kafka workload.

`not-linearizable`: is each partition a linearizable append-only log with offsets? Exactly, in one
pass. Offsets become visible in their order (`zones.Bounds`). The moment of offset k is bounded from
below by the call of the append at k, and by the call of every read that saw the log end at k; from
above by the return of that append, of every read of k, and of every read that saw the log end at
k + 1. With offset -> value and value -> offset functions, and every value sent, the log is
linearizable if and only if such moments exist. Offsets that nobody saw written are holes, which
Kafka's logs may have (markers of transactions, compaction).
Source: Gibbons and Korach, "Testing shared memories", for the method.
"""

from collections.abc import Sequence

import numpy as np

from jepsen_like.checkers.log_columns import FAIL, OK, UNKNOWN, Column, LogColumns, Mask
from jepsen_like.checkers.pairing import Pairing, first_rows
from jepsen_like.checkers.verdict import Finding, Told, evidence, invocation, report
from jepsen_like.checkers.zones import Bounds, Rows

__all__ = [
    "aborted_reads",
    "acknowledged_elsewhere",
    "bounds_of",
    "count_duplicates",
    "duplicates",
    "inconsistent_offsets",
    "out_of_order",
    "phantoms",
    "precommitted_reads",
    "shown",
    "too_late",
]


def inconsistent_offsets(log: LogColumns) -> list[Finding]:
    """Two values at one offset, in polls and acknowledgements together."""
    key, offset, value, operation = shown(log)
    codes = log.by_offset
    numbers = np.concatenate([codes.sends[log.is_told], codes.reads])
    same, other = _clashes(numbers, codes.size, value)

    def tell(row: int) -> Told:
        rows = same[row], other[row]
        first, second = (log.values[value[each]] for each in rows)
        detail = f"offset {offset[rows[0]]} holds {first!r}, and {second!r}"
        return detail, evidence(int(operation[each]) for each in rows)

    return report(
        "inconsistent-offsets", range(len(same)), lambda row: log.keys[key[same[row]]], tell
    )


def duplicates(log: LogColumns) -> list[Finding]:
    """One value that readers find at two offsets."""
    key, offset, value = log.reads.key, log.reads.offset, log.reads.value
    same, other = _repeated(log)

    def tell(row: int) -> Told:
        rows = same[row], other[row]
        first, second = (int(offset[each]) for each in rows)
        detail = f"{log.values[value[rows[0]]]!r} is at offset {first}, and at {second}"
        return detail, evidence(int(log.reads.operation[each]) for each in rows)

    return report("duplicate", range(len(same)), lambda row: log.keys[key[same[row]]], tell)


def count_duplicates(log: LogColumns) -> int:
    """All of them: of findings only the first few are told."""
    return len(_repeated(log)[0])


def _repeated(log: LogColumns) -> tuple[Column, Column]:
    return _clashes(log.by_value.reads, log.by_value.size, log.reads.offset)


def acknowledged_elsewhere(log: LogColumns) -> list[Finding]:
    sends, reads = log.sends, log.reads
    told = np.flatnonzero(log.is_told)
    at = log.first_read[log.by_value.sends[told]]
    is_read = at >= 0
    told, at = told[is_read], at[is_read]
    is_elsewhere = sends.offset[told] != reads.offset[at]
    rows = told[is_elsewhere][~_is_read_there(log, told[is_elsewhere])]

    def tell(row: int) -> Told:
        at = log.first_read[log.by_value.sends[row]]
        detail = (
            f"{log.values[sends.value[row]]!r} was acknowledged at offset {sends.offset[row]}, "
            f"and is read at {reads.offset[at]}"
        )
        return detail, evidence([int(sends.operation[row]), int(reads.operation[at])])

    return report(
        "acknowledged-elsewhere", rows.tolist(), lambda row: log.keys[sends.key[row]], tell
    )


def aborted_reads(log: LogColumns) -> list[Finding]:
    """A value whose send failed, which says that it never will be there."""
    sender, row = _senders(log, wanted=log.sends.kind == FAIL, unwanted=log.sends.kind != FAIL)
    row, first = _firsts(log, row)
    sender = sender[first]

    def tell(at: int) -> Told:
        value = log.values[log.reads.value[row[at]]]
        detail = f"{value!r} was read at offset {log.reads.offset[row[at]]}, and its send failed"
        ops = int(log.sends.operation[sender[at]]), int(log.reads.operation[row[at]])
        return detail, evidence(ops)

    return report("G1a", range(len(row)), lambda at: log.keys[log.reads.key[row[at]]], tell)


def phantoms(log: LogColumns) -> list[Finding]:
    """A value that nobody ever sent to this key."""
    reads = log.reads
    is_sent = np.zeros(log.by_value.size, dtype=bool)
    is_sent[log.by_value.sends] = True
    rows = np.flatnonzero(~is_sent[log.by_value.reads])

    def tell(row: int) -> Told:
        value, offset = log.values[reads.value[row]], reads.offset[row]
        detail = f"{value!r} was read at offset {offset}, and nobody sent it"
        return detail, evidence([int(reads.operation[row])])

    return report("phantom", rows.tolist(), lambda row: log.keys[reads.key[row]], tell)


def precommitted_reads(log: LogColumns) -> list[Finding]:
    """A transaction that polled what it was still sending."""
    sender, row = _senders(log, wanted=log.sends.kind == OK, unwanted=log.sends.kind == FAIL)
    own = log.sends.operation[sender] == log.reads.operation[row]
    row, _ = _firsts(log, row[own])

    def tell(at: int) -> Told:
        value = log.values[log.reads.value[row[at]]]
        detail = f"a transaction polled {value!r}, which it sent itself"
        return detail, evidence([int(log.reads.operation[row[at]])])

    return report(
        "precommitted-read", range(len(row)), lambda at: log.keys[log.reads.key[row[at]]], tell
    )


def shown(log: LogColumns) -> tuple[Column, Column, Column, Column]:
    """Every acknowledgement and polled record, as key, offset, value and the operation."""
    sends, reads = log.sends, log.reads
    told = log.is_told
    return (
        np.concatenate([sends.key[told], reads.key]),
        np.concatenate([sends.offset[told], reads.offset]),
        np.concatenate([sends.value[told], reads.value]),
        np.concatenate([sends.operation[told], reads.operation]),
    )


def _clashes(number: Column, size: int, what: Column) -> tuple[Column, Column]:
    """Rows of one number with different `what`: the first row, and the first that differs."""
    first = first_rows(number, size)[number]
    differs = np.flatnonzero(what != what[first])
    _, earliest = np.unique(number[differs], return_index=True)
    other = differs[earliest]
    return first[other], other


def _is_read_there(log: LogColumns, rows: Column) -> Mask:
    """For each of some sends: is the value also read at the offset that was acknowledged?"""
    codes = log.by_value
    read = np.flatnonzero(np.isin(codes.reads, codes.sends[rows]))
    where = codes.sends[rows], log.sends.offset[rows]
    wheres = codes.reads[read], log.reads.offset[read]
    pairing = Pairing.of(*where, *wheres)
    return np.isin(pairing.pairs(*where), pairing.pairs(*wheres))


def _senders(log: LogColumns, *, wanted: Mask, unwanted: Mask) -> tuple[Column, Column]:
    """Sends among `wanted`, with the reads of what they sent; not if any of `unwanted` sent it."""
    codes, candidates = log.by_value, np.flatnonzero(wanted)
    sender = first_rows(codes.sends[candidates], codes.size)
    sender[codes.sends[unwanted]] = -1
    of_read = sender[codes.reads]
    rows = np.flatnonzero(of_read >= 0)
    return candidates[of_read[rows]], rows


def _firsts(log: LogColumns, rows: Column) -> tuple[Column, Column]:
    """The first of these reads of each value, and where in `rows` it is."""
    _, first = np.unique(log.by_value.reads[rows], return_index=True)
    return rows[first], first


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
