"""What each rule says, in one sentence: for the verdict on a terminal, the page, and the handbook.

The rules themselves are in `jepsen_like.checkers`; names that Jepsen has are Jepsen's. The table
of docs/checking.md is made from the one below:

    python -c 'import jepsen_like.anomalies as a; print(a.markdown(), end="")'
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["ANOMALIES", "Anomaly", "anomaly_of", "markdown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    of: str  # what it is a rule for
    says: str
    is_order: bool = False  # of two operations, the later one would have to come first


_ANY, _LOG, _REGISTER, _SET = "any object", "log", "register", "set"
_QUEUE, _TRANSACTIONS = "queue", "transactions"
_PRODUCERS, _GROUPS = "producers", "consumer groups"
_NODES, _RUN, _HISTORY = "nodes", "run", "history"


ANOMALIES: Mapping[str, Anomaly] = {
    # --- logs
    "lost-write": Anomaly(
        of=_LOG,
        is_order=True,
        says="An acknowledged value is read by nobody, though a later offset is.",
    ),
    "unseen": Anomaly(
        of=_LOG,
        is_order=True,
        says="An acknowledged value is missing when the whole log is read afterwards.",
    ),
    "vanished": Anomaly(
        of=_LOG,
        is_order=True,
        says="A value that was there is missing when the whole log is read afterwards.",
    ),
    "duplicate": Anomaly(of=_LOG, says="One value stands at two offsets."),
    "inconsistent-offsets": Anomaly(of=_LOG, says="One offset holds two values."),
    "acknowledged-elsewhere": Anomaly(
        of=_LOG, says="A value is read at another offset than it was acknowledged at."
    ),
    "precommitted-read": Anomaly(
        of=_LOG, says="A transaction polls what it is still sending itself."
    ),
    "poll-skip": Anomaly(
        of=_LOG, says="From one poll of a process to its next, records are skipped."
    ),
    "nonmonotonic-poll": Anomaly(
        of=_LOG,
        is_order=True,
        says="A process polls records again, or earlier ones, in its next poll.",
    ),
    "int-poll-skip": Anomaly(of=_LOG, says="Within one poll, records are skipped."),
    "int-nonmonotonic-poll": Anomaly(
        of=_LOG, says="Within one poll, records do not stand in the order of their offsets."
    ),
    "nonmonotonic-send": Anomaly(
        of=_LOG, is_order=True, says="A process's later send lands before its earlier one."
    ),
    "int-nonmonotonic-send": Anomaly(
        of=_LOG, says="Within one transaction, a later send lands before an earlier one."
    ),
    "unfilled-hole": Anomaly(
        of=_LOG, says="An offset is passed over, and nothing that was sent can be at it."
    ),
    # --- registers and sets
    "inconsistent-version": Anomaly(
        of=_REGISTER, says="One version names two values, or one value has two."
    ),
    "lost-update": Anomaly(
        of=_REGISTER,
        is_order=True,
        says="A conditional write succeeds though the version it expects is not the last one.",
    ),
    "lost-element": Anomaly(
        of="set, queue",
        is_order=True,
        says="An element was there, nobody removed it, and it is gone, or passed over.",
    ),
    "removed-element": Anomaly(
        of=_SET, is_order=True, says="An element is listed after its removal was acknowledged."
    ),
    # --- queues
    "duplicate-element": Anomaly(of=_QUEUE, says="One element is dequeued twice."),
    "out-of-order": Anomaly(
        of=_QUEUE, is_order=True, says="An element leaves after another that came later."
    ),
    "wrongly-empty": Anomaly(
        of=_QUEUE, says="A queue is found empty, and some element is in it all the time."
    ),
    # --- transactions
    "G1c": Anomaly(
        of=_TRANSACTIONS,
        says="A circle of transactions, each of which reads, or writes right behind, what the one "
        "before it wrote; at least one reads.",
    ),
    "G1c-process": Anomaly(
        of=_TRANSACTIONS, says="G1c, if the order within a process counts as a step."
    ),
    "G1c-realtime": Anomaly(
        of=_TRANSACTIONS, says="G1c, if it counts as a step that one ends before another begins."
    ),
    "G0": Anomaly(
        of=_TRANSACTIONS,
        says="A circle of transactions, each of which writes right behind the one before it. "
        "Kafka allows it.",
    ),
    "G0-process": Anomaly(
        of=_TRANSACTIONS, says="G0, if the order within a process counts as a step."
    ),
    "G0-realtime": Anomaly(
        of=_TRANSACTIONS, says="G0, if it counts as a step that one ends before another begins."
    ),
    # --- producers and consumer groups
    "sequence-reused": Anomaly(
        of=_PRODUCERS, says="Two values of one producer are in the log with one sequence number."
    ),
    "sequence-out-of-order": Anomaly(
        of=_PRODUCERS, says="A later sequence number stands at an earlier offset."
    ),
    "sequence-gap": Anomaly(
        of=_PRODUCERS, says="A sequence number is missing before a later one that is in the log."
    ),
    "zombie-write": Anomaly(
        of=_PRODUCERS,
        is_order=True,
        says="A producer's older epoch writes after its newer one has written.",
    ),
    "commit-backwards": Anomaly(
        of=_GROUPS, is_order=True, says="Within a generation, a lower offset is committed later."
    ),
    "stale-commit": Anomaly(
        of=_GROUPS, is_order=True, says="An older generation commits after a newer one has."
    ),
    "resumed-elsewhere": Anomaly(
        of=_GROUPS, says="A reading does not begin at any offset that can have been committed."
    ),
    # --- whatever is judged
    "not-linearizable": Anomaly(
        of=_ANY,
        is_order=True,
        says="No order of the operations, each between its call and its return, explains the "
        "answers.",
    ),
    "nonmonotonic-read": Anomaly(
        of=_ANY,
        is_order=True,
        says="Reads that may be old, of one process at one node, go back in time.",
    ),
    "phantom": Anomaly(of=_ANY, says="Something is read that nobody wrote, or not yet."),
    "G1a": Anomaly(of=_ANY, says="Something is read whose write failed, for good (aborted read)."),
    # --- what nodes say
    "two-leaders": Anomaly(of=_NODES, says="One leader epoch of a partition has two leaders."),
    "two-states": Anomaly(of=_NODES, says="One partition epoch names two different states."),
    "leader-epoch-backwards": Anomaly(
        of=_NODES, is_order=True, says="A node sees a leader epoch, and later an earlier one."
    ),
    "partition-epoch-backwards": Anomaly(
        of=_NODES, is_order=True, says="A node sees a partition epoch, and later an earlier one."
    ),
    "epochs-disagree": Anomaly(
        of=_NODES, says="An earlier leader epoch comes with a later partition epoch."
    ),
    "isr-outside-replicas": Anomaly(
        of=_NODES, says="Somebody in the ISR or ELR is no replica, or in both."
    ),
    "high-watermark-backwards": Anomaly(
        of=_NODES,
        is_order=True,
        says="A leader's high watermark goes back within its leader epoch.",
    ),
    "high-watermark-beyond-log": Anomaly(
        of=_NODES, says="A node's high watermark lies behind the end of its log."
    ),
    "leader-outside-isr": Anomaly(of=_NODES, says="A leader is not in its own ISR."),
    # --- the run as a whole
    "not-live-again": Anomaly(
        of=_RUN, says="Everything is healed, and the cluster does not serve in time."
    ),
    "not-readable": Anomaly(
        of=_RUN, says="Everything is healed, and not all can be read back in time."
    ),
    # --- a history that is wrong itself
    "lint-overlap": Anomaly(
        of=_HISTORY, says="A process begins an operation while its last one is open."
    ),
    "lint-unmatched": Anomaly(of=_HISTORY, says="An operation ends that never began."),
    "lint-backwards": Anomaly(of=_HISTORY, says="Time, or the index, goes back."),
    "lint-reuse": Anomaly(
        of=_HISTORY, says="A process goes on after an operation whose end nobody knows."
    ),
    "lint-timed-out": Anomaly(
        of=_HISTORY, says="A time-out is called a failure: it may still happen."
    ),
    "lint-changed": Anomaly(of=_HISTORY, says="What is said to be done is not what was asked for."),
}
_UNNAMED = Anomaly(of=_ANY, says="")


def anomaly_of(rule: str) -> Anomaly:
    """Explains the rule; says nothing of one that is not in the table."""
    return ANOMALIES.get(rule, _UNNAMED)


def markdown() -> str:
    lines = ["| rule | of | says |", "|---|---|---|"]
    lines += [f"| `{rule}` | {each.of} | {each.says} |" for rule, each in ANOMALIES.items()]
    return "\n".join(lines) + "\n"
