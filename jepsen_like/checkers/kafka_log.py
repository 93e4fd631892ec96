"""The verdict on sends and polls: every rule of the log workload.

    history -> operations -> columns -> records, losses, sessions, order -> verdict

Keys are judged together, in passes over columns; a finding names its key. Not here: transactions'
cycles (G0, G1c), which need edges between transactions.
"""

from collections.abc import Sequence

from jepsen_like.checkers import log_losses, log_records, log_sessions, partition_order
from jepsen_like.checkers.log_columns import LogColumns
from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.verdict import Finding, Verdict

__all__ = ["check_log", "check_log_columns", "linearizability"]


def check_log(operations: Sequence[Operation], *, is_idempotent: bool = True) -> Verdict:
    return check_log_columns(LogColumns.of(operations), is_idempotent=is_idempotent)


def check_log_columns(log: LogColumns, *, is_idempotent: bool = True) -> Verdict:
    """A producer that is not idempotent may leave a value at two offsets."""
    findings = [
        *log_losses.lost_writes(log),
        *log_losses.unseen(log),
        *log_losses.vanished(log),
        *log_records.inconsistent_offsets(log),
        *(log_records.duplicates(log) if is_idempotent else ()),
        *(log_records.acknowledged_elsewhere(log) if is_idempotent else ()),
        *log_records.aborted_reads(log),
        *log_records.phantoms(log),
        *log_records.precommitted_reads(log),
        *log_sessions.polls_out_of_order(log),
        *log_sessions.sends_out_of_order(log),
        *partition_order.out_of_order(log),
    ]
    counts = {
        "sends": len(log.sends.key),
        "records polled": len(log.reads.key),
        "readings to the end": int((log.ends.start >= 0).sum()),
    }
    if not is_idempotent:
        counts["duplicates, allowed"] = log_records.count_duplicates(log)
    return Verdict.of(findings, counts, objects=log.keys, doubts=log_losses.doubts(log))


def linearizability(log: LogColumns, *, dense: bool = False) -> Verdict:
    """Only whether each key is a linearizable append-only log; `dense`: one without holes.

    Exact, but where an acknowledgement does not tell its offset and holes must be filled.
    """
    findings: list[Finding] = [
        *log_records.inconsistent_offsets(log),
        *log_records.duplicates(log),
        *log_records.acknowledged_elsewhere(log),
        *log_records.aborted_reads(log),
        *log_records.phantoms(log),
        *partition_order.out_of_order(log),
    ]
    if not dense:
        return Verdict.of(findings, objects=log.keys)
    unlocated = partition_order.unlocated_acknowledged(log)
    findings += partition_order.unfilled_holes(log)
    doubts = dict.fromkeys(sorted(unlocated), "an acknowledgement did not tell its offset")
    return Verdict.of(findings, objects=log.keys, doubts=doubts)
