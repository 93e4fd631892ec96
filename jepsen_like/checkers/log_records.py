"""One value at one offset, and only values that were sent: what records of a log must be.

The names are Jepsen's where it has one. `acknowledged-elsewhere` is ours: the acknowledgement names
an offset, and readers find the value at another one only.

A producer that is not idempotent may write a value twice, when it sends again what it was not
answered. Then `duplicate` is no violation; all the rest is.
Source: Jepsen's kafka workload.
"""

import numpy as np

from jepsen_like.checkers.log_columns import FAIL, OK, UNKNOWN, Column, LogColumns
from jepsen_like.checkers.pairing import Pairing, positions
from jepsen_like.checkers.places import evidence
from jepsen_like.checkers.reporting import Told, report
from jepsen_like.verdict import Finding

__all__ = [
    "aborted_reads",
    "acknowledged_elsewhere",
    "duplicates",
    "inconsistent_offsets",
    "phantoms",
    "precommitted_reads",
    "shown",
]


def inconsistent_offsets(log: LogColumns) -> list[Finding]:
    """Two values at one offset, in polls and acknowledgements together."""
    key, offset, value, operation = shown(log)
    same, other = _clashes(key, offset, value)

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
    same, other = _clashes(key, value, offset)

    def tell(row: int) -> Told:
        rows = same[row], other[row]
        first, second = (int(offset[each]) for each in rows)
        detail = f"{log.values[value[rows[0]]]!r} is at offset {first}, and at {second}"
        return detail, evidence(int(log.reads.operation[each]) for each in rows)

    return report("duplicate", range(len(same)), lambda row: log.keys[key[same[row]]], tell)


def acknowledged_elsewhere(log: LogColumns) -> list[Finding]:
    sends, reads = log.sends, log.reads
    told = np.flatnonzero((sends.kind == OK) & (sends.offset != UNKNOWN))
    by_value = Pairing.of(sends.key, sends.value, reads.key, reads.value)
    sent = by_value.pairs(sends.key[told], sends.value[told])
    read = by_value.pairs(reads.key, reads.value)
    where = Pairing.of(read, reads.offset, sent, sends.offset[told])
    is_read_there = np.isin(where.pairs(sent, sends.offset[told]), where.pairs(read, reads.offset))
    read_at = positions(read, sent)
    rows = told[(read_at >= 0) & ~is_read_there]
    seen = dict(zip(told.tolist(), read_at.tolist(), strict=True))

    def tell(row: int) -> Told:
        at = seen[row]
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

    def tell(at: int) -> Told:
        value = log.values[log.reads.value[row[at]]]
        detail = f"{value!r} was read at offset {log.reads.offset[row[at]]}, and its send failed"
        ops = int(log.sends.operation[sender[at]]), int(log.reads.operation[row[at]])
        return detail, evidence(ops)

    return report("G1a", range(len(row)), lambda at: log.keys[log.reads.key[row[at]]], tell)


def phantoms(log: LogColumns) -> list[Finding]:
    """A value that nobody ever sent to this key."""
    sends, reads = log.sends, log.reads
    pairing = Pairing.of(sends.key, sends.value, reads.key, reads.value)
    sent = pairing.pairs(sends.key, sends.value)
    rows = np.flatnonzero(~np.isin(pairing.pairs(reads.key, reads.value), sent))

    def tell(row: int) -> Told:
        value, offset = log.values[reads.value[row]], reads.offset[row]
        detail = f"{value!r} was read at offset {offset}, and nobody sent it"
        return detail, evidence([int(reads.operation[row])])

    return report("phantom", rows.tolist(), lambda row: log.keys[reads.key[row]], tell)


def precommitted_reads(log: LogColumns) -> list[Finding]:
    """A transaction that polled what it was still sending."""
    sender, row = _senders(log, wanted=log.sends.kind == OK, unwanted=log.sends.kind == FAIL)
    own = log.sends.operation[sender] == log.reads.operation[row]
    row = row[own]

    def tell(at: int) -> Told:
        value = log.values[log.reads.value[row[at]]]
        detail = f"a transaction polled {value!r}, which it sent itself"
        return detail, evidence([int(log.reads.operation[row[at]])])

    return report(
        "precommitted-read", range(len(row)), lambda at: log.keys[log.reads.key[row[at]]], tell
    )


def shown(log: LogColumns) -> tuple[Column, Column, Column, Column]:
    """Who saw which value at which offset of which key: acknowledgements and polls."""
    sends, reads = log.sends, log.reads
    told = (sends.kind == OK) & (sends.offset != UNKNOWN)
    return (
        np.concatenate([sends.key[told], reads.key]),
        np.concatenate([sends.offset[told], reads.offset]),
        np.concatenate([sends.value[told], reads.value]),
        np.concatenate([sends.operation[told], reads.operation]),
    )


def _clashes(key: Column, of: Column, what: Column) -> tuple[Column, Column]:
    """Rows of one (key, of) with different `what`: the first row, and the first that differs."""
    pairing = Pairing.of(key, of)
    pair = pairing.pairs(key, of)
    order = np.lexsort((np.arange(len(pair)), pair))
    starts = np.flatnonzero(np.diff(pair[order], prepend=-1))
    first = order[np.repeat(starts, np.diff(np.append(starts, len(order))))]
    differs = what[order] != what[first]
    same, other = first[differs], order[differs]
    _, earliest = np.unique(pair[same], return_index=True)
    return same[earliest], other[earliest]


def _senders(log: LogColumns, *, wanted: Column, unwanted: Column) -> tuple[Column, Column]:
    """Sends among `wanted`, with the reads of what they sent; not if any of `unwanted` sent it."""
    sends, reads = log.sends, log.reads
    pairing = Pairing.of(sends.key, sends.value, reads.key, reads.value)
    sent, read = pairing.pairs(sends.key, sends.value), pairing.pairs(reads.key, reads.value)
    candidates = np.flatnonzero(wanted)
    at = positions(sent[candidates], read)
    rows = np.flatnonzero((at >= 0) & ~np.isin(read, sent[unwanted]))
    _, first = np.unique(read[rows], return_index=True)
    rows = rows[first]
    return candidates[at[rows]], rows
