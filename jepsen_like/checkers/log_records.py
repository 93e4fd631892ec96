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
k + 1. An append that was not told where it landed landed where its value was read, unless values
may stand at two offsets. With offset -> value and value -> offset functions, and every value sent,
the log is linearizable if and only if such moments exist. Offsets that nobody saw written are gaps,
which Kafka's logs may have (markers of transactions, compaction).
Source: Gibbons and Korach, "Testing shared memories", for the method.
"""

from collections.abc import Sequence

import numpy as np

from jepsen_like.checkers.log_columns import FAIL, OK, UNKNOWN, Column, LogColumns, Mask
from jepsen_like.checkers.pairing import Pairing, first_rows
from jepsen_like.checkers.verdict import Finding, Told, invocation, report
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

    def tell(at: int) -> Told:
        first, second = (log.values[value[each[at]]] for each in (same, other))
        detail = f"offset {offset[same[at]]} holds {first!r}, and {second!r}"
        return detail, (operation[same[at]], operation[other[at]])

    return report("inconsistent-offsets", log.keys, key[same], tell)


def duplicates(log: LogColumns) -> list[Finding]:
    """One value that readers find at two offsets."""
    reads, (same, other) = log.reads, _repeated(log)

    def tell(at: int) -> Told:
        first, second = reads.offset[same[at]], reads.offset[other[at]]
        detail = f"{log.values[reads.value[same[at]]]!r} is at offset {first}, and at {second}"
        return detail, (reads.operation[same[at]], reads.operation[other[at]])

    return report("duplicate", log.keys, reads.key[same], tell)


def count_duplicates(log: LogColumns) -> int:
    """All of them: of findings only the first few are told."""
    return len(_repeated(log)[0])


def _repeated(log: LogColumns) -> tuple[Column, Column]:
    return _clashes(log.by_value.reads, log.by_value.size, log.reads.offset)


def acknowledged_elsewhere(log: LogColumns) -> list[Finding]:
    sends, reads = log.sends, log.reads
    told = np.flatnonzero(log.is_told)
    first = log.first_read[log.by_value.sends[told]]
    told, first = told[first >= 0], first[first >= 0]
    rows = told[sends.offset[told] != reads.offset[first]]
    rows = rows[~_is_read_there(log, rows)]
    found = log.first_read[log.by_value.sends[rows]]

    def tell(at: int) -> Told:
        detail = (
            f"{log.values[sends.value[rows[at]]]!r} was acknowledged at offset "
            f"{sends.offset[rows[at]]}, and is read at {reads.offset[found[at]]}"
        )
        return detail, (sends.operation[rows[at]], reads.operation[found[at]])

    return report("acknowledged-elsewhere", log.keys, sends.key[rows], tell)


def aborted_reads(log: LogColumns) -> list[Finding]:
    """A value whose send failed, which says that it never will be there."""
    sends, reads = log.sends, log.reads
    sender, row = _senders(log, wanted=sends.kind == FAIL, unwanted=sends.kind != FAIL)
    row, first = _firsts(log, row)
    sender = sender[first]

    def tell(at: int) -> Told:
        value, offset = log.values[reads.value[row[at]]], reads.offset[row[at]]
        detail = f"{value!r} was read at offset {offset}, and its send failed"
        return detail, (sends.operation[sender[at]], reads.operation[row[at]])

    return report("G1a", log.keys, reads.key[row], tell)


def phantoms(log: LogColumns) -> list[Finding]:
    """A value that nobody ever sent to this key."""
    reads = log.reads
    is_sent = np.zeros(log.by_value.size, dtype=bool)
    is_sent[log.by_value.sends] = True
    rows = np.flatnonzero(~is_sent[log.by_value.reads])

    def tell(at: int) -> Told:
        value, offset = log.values[reads.value[rows[at]]], reads.offset[rows[at]]
        detail = f"{value!r} was read at offset {offset}, and nobody sent it"
        return detail, (reads.operation[rows[at]],)

    return report("phantom", log.keys, reads.key[rows], tell)


def precommitted_reads(log: LogColumns) -> list[Finding]:
    """A transaction that polled what it was still sending."""
    sends, reads = log.sends, log.reads
    sender, row = _senders(log, wanted=sends.kind == OK, unwanted=sends.kind == FAIL)
    row, _ = _firsts(log, row[sends.operation[sender] == reads.operation[row]])

    def tell(at: int) -> Told:
        value = log.values[reads.value[row[at]]]
        detail = f"a transaction polled {value!r}, which it sent itself"
        return detail, (reads.operation[row[at]],)

    return report("precommitted-read", log.keys, reads.key[row], tell)


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


def out_of_order(log: LogColumns, *, is_idempotent: bool) -> list[Finding]:
    return too_late(bounds_of(log, is_idempotent=is_idempotent), log.keys)


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
        return detail, ops

    return report("not-linearizable", keys, bounds.key[late], tell)


def bounds_of(log: LogColumns, *, is_idempotent: bool) -> Bounds:
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
            *([_returns_of_what_was_read(log)] if is_idempotent else []),
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


def _returns_of_what_was_read(log: LogColumns) -> Rows:
    """A value that stands at one offset, and that one send brought, was there when that was
    acknowledged, even if not told where."""
    sends, reads, codes = log.sends, log.reads, log.by_value
    able = codes.sends[sends.kind != FAIL]
    is_only = np.bincount(able, minlength=codes.size)[codes.sends] == 1
    untold = np.flatnonzero((sends.kind == OK) & (sends.offset == UNKNOWN) & is_only)
    at = first_rows(codes.sends[untold], codes.size)[codes.reads]
    found = np.flatnonzero(at >= 0)
    row = untold[at[found]]
    return reads.key[found], reads.offset[found], sends.ret[row], sends.operation[row]
