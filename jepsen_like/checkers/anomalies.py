"""What each rule says, in one sentence: for the verdict on a terminal, the page, and the handbook.

The rules themselves are in `jepsen_like.checkers`; names that Jepsen has are Jepsen's. The table
of docs/checking.md is made from the one below:

    python -c 'import jepsen_like.checkers.anomalies as a; print(a.markdown(), end="")'
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["ANOMALIES", "anomaly_of", "markdown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    of: str  # what it is a rule for
    says: str
    is_order: bool = False  # of two operations, the later one would have to come first


# By the kind of object: its rules, and what each of them says.
_SAID: Mapping[str, Mapping[str, str]] = {
    "log": {
        "lost-write": "An acknowledged value is read by nobody, though a later offset is.",
        "unseen": "An acknowledged value is missing when the whole log is read afterwards.",
        "vanished": "A value that was there is missing when the whole log is read afterwards.",
        "duplicate": "One value stands at two offsets.",
        "inconsistent-offsets": "One offset holds two values.",
        "acknowledged-elsewhere": "A value is read at another offset than it was acknowledged at.",
        "precommitted-read": "A transaction polls what it is still sending itself.",
        "poll-skip": "From one poll of a process to its next, records are skipped.",
        "nonmonotonic-poll": "A process polls records again, or earlier ones, in its next poll.",
        "int-poll-skip": "Within one poll, records are skipped.",
        "int-nonmonotonic-poll": "Within one poll, records do not stand in the order of their "
        "offsets.",
        "nonmonotonic-send": "A process's later send lands before its earlier one.",
        "int-nonmonotonic-send": "Within one transaction, a later send lands before an earlier "
        "one.",
    },
    "register": {
        "inconsistent-version": "One version names two values, or one value has two.",
        "lost-update": "A conditional write succeeds though the version it expects is not the "
        "last one; or two transactions write over the same version that both have read.",
    },
    "set, queue, total queue": {
        "lost-element": "An element was there, nobody removed it, and it is gone, or passed over.",
    },
    "set": {
        "removed-element": "An element is listed after its removal was acknowledged.",
    },
    "queue": {
        "duplicate-element": "One element is dequeued twice.",
        "out-of-order": "An element leaves after another that came later.",
        "wrongly-empty": "A queue is found empty, and some element is in it all the time.",
    },
    "transactions": {
        "G1c": "A cycle of transactions, each of which reads, or writes right behind, what the "
        "one before it wrote; at least one reads.",
        "G1c-process": "G1c, if the order within a process counts as a step.",
        "G1c-realtime": "G1c, if it counts as a step that one ends before another begins.",
        "G0": "A cycle of transactions, each of which writes right behind the one before it. "
        "Kafka allows it.",
        "G0-process": "G0, if the order within a process counts as a step.",
        "G0-realtime": "G0, if it counts as a step that one ends before another begins.",
    },
    "transactions of reads and writes": {
        "G1b": "A transaction reads what its writer wrote over in the same transaction.",
        "G-single": "A cycle of transactions of which exactly one has read a version that the "
        "next one wrote over.",
        "G-single-process": "G-single, if the order within a process counts as a step.",
        "G-single-realtime": "G-single, if it counts as a step that one ends before another "
        "begins.",
        "G-nonadjacent": "A cycle with several of these, no two next to each other.",
        "G-nonadjacent-process": "G-nonadjacent, with the order within a process.",
        "G-nonadjacent-realtime": "G-nonadjacent, with that of real time.",
        "G2-item": "A cycle with several of these.",
        "G2-item-process": "G2-item, with the order within a process.",
        "G2-item-realtime": "G2-item, with that of real time.",
        "internal": "A transaction does not see what it has read or written itself.",
        "incompatible-order": "Two lists of a key, of which neither begins with the other.",
        "duplicate-elements": "One list has an element twice.",
    },
    "bank": {
        "wrong-total": "The balances of one read do not add up to the total.",
        "negative-balance": "An account is overdrawn.",
        "unknown-account": "Somebody has read an account that is none.",
    },
    "counter": {
        "out-of-range": "A read lies outside of what it must have seen and what it may have.",
    },
    "producers": {
        "sequence-reused": "Two values of one producer are in the log with one sequence number.",
        "sequence-out-of-order": "A later sequence number stands at an earlier offset.",
        "sequence-gap": "A sequence number is missing before a later one that is in the log.",
        "zombie-write": "A producer's older epoch writes after its newer one has written.",
    },
    "consumer groups": {
        "commit-backwards": "Within a generation, a lower offset is committed later.",
        "stale-commit": "An older generation commits after a newer one has.",
        "resumed-elsewhere": "A reading does not begin at any offset that can have been committed.",
    },
    "any object": {
        "not-linearizable": "No order of the operations, each between its call and its return, "
        "explains the answers.",
        "nonmonotonic-read": "Reads that may be old, of one process at one node, go back in time.",
        "phantom": "Something is read that nobody wrote, or not yet.",
        "G1a": "Something is read whose write failed, for good (aborted read).",
    },
    "nodes": {
        "two-leaders": "One leader epoch of a partition has two leaders.",
        "two-states": "One partition epoch names two different states.",
        "leader-epoch-backwards": "A node sees a leader epoch, and later an earlier one.",
        "partition-epoch-backwards": "A node sees a partition epoch, and later an earlier one.",
        "epochs-disagree": "An earlier leader epoch comes with a later partition epoch.",
        "isr-outside-replicas": "Somebody in the ISR or ELR is no replica, or in both.",
        "high-watermark-backwards": "A leader's high watermark goes back within its leader epoch.",
        "high-watermark-beyond-log": "A node's high watermark lies behind the end of its log.",
        "leader-outside-isr": "A leader is not in its own ISR.",
    },
    "run": {
        "not-live-again": "Everything is healed, and the cluster does not serve in time.",
        "not-readable": "Everything is healed, and not all can be read back in time.",
    },
    "history": {
        "lint-overlap": "A process begins an operation while its last one is open.",
        "lint-unmatched": "An operation ends that never began.",
        "lint-backwards": "Time, or the index, goes back.",
        "lint-reuse": "A process goes on after an operation whose end nobody knows.",
        "lint-timed-out": "A time-out is called a failure: it may still happen.",
        "lint-changed": "What is said to be done is not what was asked for.",
    },
}
_OF_ORDER = frozenset(
    (
        "lost-write",
        "unseen",
        "vanished",
        "nonmonotonic-poll",
        "nonmonotonic-send",
        "lost-update",
        "lost-element",
        "removed-element",
        "out-of-order",
        "zombie-write",
        "commit-backwards",
        "stale-commit",
        "not-linearizable",
        "nonmonotonic-read",
        "leader-epoch-backwards",
        "partition-epoch-backwards",
        "high-watermark-backwards",
    )
)
ANOMALIES: Mapping[str, Anomaly] = {
    rule: Anomaly(of=of, says=says, is_order=rule in _OF_ORDER)
    for of, rules in _SAID.items()
    for rule, says in rules.items()
}
_UNNAMED = Anomaly(of="any object", says="")


def anomaly_of(rule: str) -> Anomaly:
    """Explains the rule; says nothing of one that is not in the table."""
    return ANOMALIES.get(rule, _UNNAMED)


def markdown() -> str:
    lines = ["| rule | of | says |", "|---|---|---|"]
    lines += [f"| `{rule}` | {each.of} | {each.says} |" for rule, each in ANOMALIES.items()]
    return "\n".join(lines) + "\n"
