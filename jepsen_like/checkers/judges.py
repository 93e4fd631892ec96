"""Which checkers judge which workload, and into which objects its history falls apart.

A history is right if and only if each of its objects is (linearizability is a local property), so
that objects can be judged on many machines, or many at once. What spans several objects is not
cut: then the run is one object. Source: Herlihy and Wing 1990; Horn and Kroening 2015.

What each of them reads of an operation, beside the conventions of Jepsen's workloads:

    assign, extra seek="beginning"      the reading begins at zero
    assign, extra seek="committed"      it begins at what the group (extra) has committed
    ... ="committed-stale"              or had, once
    ... ="end", or any other place      it begins at its first record; so for subscribe
    poll, extra caught_up=True          all keys that are assigned have been read to their ends
    poll, extra ends={key: offset}      the end of the log, as this operation was told
    read-stale                          may be old, never wrong; monotone for a process and a node
    any read, extra node=id             whom it asked
    any write or read, extra version=n  the version that it made, or saw
    a write, extra expected=n           it was made only if version n was still the last one
    observe, extra incarnation=x        a node that was started again is another observer
    cas that fails, extra seen=v        it is a read of v
    cas that fails, extra mismatch=True the value was another than it expected; not told, which
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum

from jepsen_like.checkers.bank import check_bank
from jepsen_like.checkers.consumer_groups import check_commits
from jepsen_like.checkers.counters import check_counter
from jepsen_like.checkers.kafka_log import check_log_columns
from jepsen_like.checkers.lint import Lint, lint
from jepsen_like.checkers.list_append import check_list_append
from jepsen_like.checkers.log_columns import LogColumns
from jepsen_like.checkers.models import STRINGS, Model
from jepsen_like.checkers.observations import check_observations
from jepsen_like.checkers.operations import OBSERVE, Operation, operations
from jepsen_like.checkers.producer_sequences import check_sequences
from jepsen_like.checkers.queues import check_queues
from jepsen_like.checkers.registers import check_registers, initial_of
from jepsen_like.checkers.rw_register import check_rw_registers
from jepsen_like.checkers.search import Budget, check_as, check_keyed
from jepsen_like.checkers.sets import check_set
from jepsen_like.checkers.total_queues import check_total_queue
from jepsen_like.checkers.transactions import check_transactions
from jepsen_like.checkers.verdict import Finding, Outcome, Verdict, compose
from jepsen_like.histories.history import (
    NEMESIS,
    TRUST_FAILURES,
    Header,
    History,
    Kind,
    Op,
    Value,
)

__all__ = [
    "JUDGED",
    "LINT_SHOWN",
    "LOOKED_AT",
    "Split",
    "disbelieved",
    "is_idempotent",
    "judge",
    "judge_log",
    "key_of",
    "shows_nothing",
    "split_of",
    "unknown",
]

LINT_SHOWN = 10

_OF_LOGS = frozenset({"poll", "send", "txn"})

# workload -> the operations that its checkers look at, where they pass over all others in silence
LOOKED_AT: Mapping[str, frozenset[str]] = {
    "admin": _OF_LOGS,
    "kafka": _OF_LOGS | {"commit", "committed", "committed-stale"},
    "log": _OF_LOGS,
    "observe": frozenset({OBSERVE}),
    "transactions": _OF_LOGS,
}

Judge = Callable[[Sequence[Operation], Header, Budget | None], Verdict]


def judge(history: History, budget: Budget | None = None, *, model: Model | None = None) -> Verdict:
    """Needs nothing but the history: it may come from a file. The budget is that of a search.

    `model` is one of somebody's own: then what the history says it is does not matter.
    """
    check = (
        JUDGED.get(history.header.workload)
        if model is None
        else (lambda paired, _, budget: check_as(paired, model, budget))
    )
    if check is None:
        known = ", ".join(sorted(JUDGED))
        return Verdict.undecided(f"{unknown(history.header.workload)}: known are {known}")
    paired = operations(history.ops)
    verdict = compose([check(paired, history.header, budget), check_observations(history.ops)])
    return _believed(verdict, history, history.header.workload if model is None else "")


def disbelieved(wrong: Sequence[Finding], count: int) -> Verdict:
    """The verdict on a history that is wrong itself, which proves nothing; `wrong` is what `lint`
    found first, of `count` in all."""
    first = wrong[0]
    more = f", and {count - 1} more" if count > 1 else ""
    return Verdict(
        outcome=Outcome.UNDECIDED,
        findings=tuple(wrong[:LINT_SHOWN]),
        reason=f"the history itself is wrong: {first.object}: {first.detail}{more}",
    )


def unknown(workload: str) -> str:
    """Why nothing is judged: `workload` is what the history says of itself, or nothing."""
    if not workload:
        return "its operations do not tell what it is a history of (--model NAME says it)"
    return f"no checker knows the workload {workload!r}"


def judge_log(log: LogColumns, header: Header) -> Verdict:
    """A history of sends and polls that somebody has put into columns already."""
    return check_log_columns(log, is_idempotent=is_idempotent(header.options))


def is_idempotent(options: Mapping[str, Value]) -> bool:
    """Whether a run's producers may not leave a value at two offsets."""
    return bool(options.get("idempotent", True))


def shows_nothing() -> Verdict:
    """The verdict where nothing that is judged was ok: every rule agrees with such a history."""
    return Verdict.undecided("no operation that is judged was ok, which shows nothing")


def _shows(op: Op, workload: str) -> bool:
    if op.kind is not Kind.OK:
        return False
    wanted = LOOKED_AT.get(workload)
    is_line = op.process == NEMESIS or op.f == OBSERVE
    return not is_line if wanted is None else op.f in wanted


def _believed(verdict: Verdict, history: History, workload: str) -> Verdict:
    rules = Lint(trusts_failures=bool(history.header.options.get(TRUST_FAILURES)))
    wrong = lint(history.ops, rules)
    if rules.trusted:
        verdict = replace(verdict, counts={**verdict.counts, "trusted failures": rules.trusted})
    if not wrong:
        is_shown = any(_shows(op, workload) for op in history.ops)
        return verdict if is_shown else compose([verdict, shows_nothing()])
    doubt = disbelieved(wrong, len(wrong))
    return replace(compose([doubt, verdict]), outcome=doubt.outcome, reason=doubt.reason)


def _judge_log(paired: Sequence[Operation], header: Header, _: Budget | None) -> Verdict:
    return judge_log(LogColumns.of(paired), header)


def _judge_registers(paired: Sequence[Operation], header: Header, budget: Budget | None) -> Verdict:
    return check_registers(paired, budget, initial=initial_of(header.options))


def _judge_clients(paired: Sequence[Operation], header: Header, budget: Budget | None) -> Verdict:
    """Logs, and what spans them or needs more than they tell: then a run is one object."""
    log = LogColumns.of(paired)
    return compose(
        [
            judge_log(log, header),
            check_transactions(log, paired, header.options),
            check_sequences(log, paired),
            check_commits(paired, budget),
        ]
    )


JUDGED: Mapping[str, Judge] = {
    "admin": _judge_log,
    "append": lambda paired, header, _: check_list_append(paired, header.options),
    "bank": lambda paired, header, _: check_bank(paired, header.options),
    "cas-register": _judge_registers,
    "counter": lambda paired, *_: check_counter(paired),
    "kafka": _judge_clients,
    "kv": lambda paired, _, budget: check_keyed(paired, STRINGS, budget),
    "log": _judge_log,
    "observe": lambda *_: Verdict.of([]),
    "partition-epoch": _judge_registers,
    "queue": lambda paired, _, budget: check_queues(paired, budget),
    "register": _judge_registers,
    "rw-register": lambda paired, header, _: check_rw_registers(paired, header.options),
    "set": lambda paired, _, budget: check_set(paired, budget),
    "total-queue": lambda paired, *_: check_total_queue(paired),
    "transactions": _judge_clients,
}


class Split(Enum):
    STEPS = "steps"  # an operation may touch several keys, each step of it one: see `log_steps`
    KEYS = "keys"  # an operation's value is [key, ...]
    WHOLE = "whole"


_SPLITS = {
    "admin": Split.STEPS,
    "cas-register": Split.KEYS,
    "kv": Split.KEYS,
    "log": Split.STEPS,
    "queue": Split.KEYS,
    "register": Split.KEYS,
}


def split_of(workload: str) -> Split:
    return _SPLITS.get(workload, Split.WHOLE)


def key_of(operation: Operation) -> str:
    """The key of an operation in a workload that falls apart by keys; "" if it has none."""
    match operation.argument:
        case [key, *_]:
            return str(key)
        case _:
            return ""
