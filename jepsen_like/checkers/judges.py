"""Which checkers judge which workload: the only place that knows.

What each of them reads of an operation, beside the conventions of Jepsen's workloads:

    assign, extra seek="beginning"      the reading begins at zero
    poll, extra caught_up=True          all keys that are assigned have been read to their ends
    poll, extra ends={key: offset}      the end of the log, as this operation was told
    read-stale                          may be old, never wrong; monotone for a process and a node
    any read, extra node=id             whom it asked
    any write or read, extra version=n  the version that it made, or saw
    cas that fails, extra seen=v        it is a read of v
    cas that fails, extra mismatch=True the value was another than it expected; not told, which
"""

from collections.abc import Callable, Mapping, Sequence

from jepsen_like.checkers.kafka_log import check_log
from jepsen_like.checkers.operations import Operation, operations
from jepsen_like.checkers.registers import check_registers
from jepsen_like.checkers.search import Budget
from jepsen_like.history import Header, History
from jepsen_like.verdict import Verdict, compose

__all__ = ["JUDGED", "judge"]

Judge = Callable[[Sequence[Operation], Header, Budget | None], Verdict]


def judge(history: History, budget: Budget | None = None) -> Verdict:
    """Needs nothing but the history: it may come from a file. The budget is that of a search."""
    check = JUDGED.get(history.header.workload)
    if check is None:
        known = ", ".join(sorted(JUDGED))
        return Verdict.undecided(
            f"no checker knows the workload {history.header.workload!r}: known are {known}"
        )
    return compose([check(operations(history.ops), history.header, budget)])


def _judge_log(paired: Sequence[Operation], header: Header, _: Budget | None) -> Verdict:
    return check_log(paired, is_idempotent=bool(header.options.get("idempotent", True)))


def _judge_registers(paired: Sequence[Operation], _: Header, budget: Budget | None) -> Verdict:
    return check_registers(paired, budget)


JUDGED: Mapping[str, Judge] = {
    "admin": _judge_log,
    "cas-register": _judge_registers,
    "log": _judge_log,
    "register": _judge_registers,
}
