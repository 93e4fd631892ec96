"""Histories of logs, groups and producers: the rules that they break, by their words and as judged.

The outcome of each object must be that of its rules, and the rules must be the same. Two of them
may share what they tell: no order of the records of a key has many names, and so has a cycle.
"""

from functools import partial

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Outcome, Verdict
from jepsen_like.histories.history import History
from tests.agreement.kafka_clients import WISHES, kafka_history
from tests.agreement.kafka_truth import broken_groups, broken_producers, has_serial_order
from tests.agreement.log_order import has_order
from tests.agreement.log_truth import Broken, Logs, broken_logs, is_doubted
from tests.agreement.observing import broken_observations, observed_history
from tests.agreement.rows import Compared, Row

__all__ = ["RULED"]

# No order of what is said of an object explains it.
_NO_ORDER = {
    "G1a",
    "acknowledged-elsewhere",
    "duplicate",
    "inconsistent-offsets",
    "nonmonotonic-read",
    "not-linearizable",
    "phantom",
}
_OF_LOGS_TOO = _NO_ORDER - {
    "nonmonotonic-read",
    "not-linearizable",
}  # these have rules of their own
_CYCLE = "a cycle of transactions"


def _logs_compared(history: History) -> Compared:
    logs = Logs(history)
    options = history.header.options
    is_idempotent = bool(options["idempotent"])
    broken = broken_logs(logs, is_idempotent=is_idempotent)
    unordered = {key for key in logs.keys if not has_order(logs, key, is_idempotent=is_idempotent)}
    if history.header.workload == "kafka":
        of_groups, without_order = broken_groups(logs)
        broken |= broken_producers(logs) | of_groups
        unordered |= without_order
        if not has_serial_order(logs, is_isolated=bool(options.get("isolated_writes"))):
            broken.add((_CYCLE, ""))
    doubted = {key for key in logs.keys if is_doubted(logs, key)}
    return _compared(judge(history), broken, unordered, doubted, logs.keys)


def _observations_compared(history: History) -> Compared:
    """One contradiction of several nodes may be told as another one: of neighbours alone."""
    broken = broken_observations(history)
    verdict = judge(history)
    found = {(each.rule, each.object) for each in verdict.findings}
    told = {name for _, name in found}
    differs = [f"falsely {each}" for each in sorted(found - broken)]
    differs += [f"missed {each}" for each in sorted(broken) if each[1] not in told]
    others = {each for each in broken - found if each[0] != "epochs-disagree"}
    differs += [f"missed {each}, and not all else" for each in sorted(others)]
    truth = Outcome.VIOLATED if broken else Outcome.VALID
    return Compared(truth, verdict, differs)


def _compared(
    verdict: Verdict, broken: Broken, unordered: set[str], doubted: set[str], keys: set[str]
) -> Compared:
    """`keys`: those of logs, whose records have rules of their own beside their order."""
    differs = []
    cycles = {each.object for each in verdict.findings if _is_cycle(each.rule)}
    found = {(each.rule, each.object) for each in verdict.findings if not _is_cycle(each.rule)}
    found |= {(_CYCLE, "")} if cycles else set()
    found_unordered = {name for rule, name in found if rule in _NO_ORDER}
    ruled = {
        (rule, name)
        for rule, name in found
        if rule not in _NO_ORDER or (rule in _OF_LOGS_TOO and name in keys)
    }
    if {"duplicate", "inconsistent-offsets"} & {rule for rule, _ in broken}:
        # Who wrote behind whom has more than one answer.
        ruled, broken = ruled - {(_CYCLE, "")}, broken - {(_CYCLE, "")}
    if ruled != broken:
        differs.append(f"falsely {sorted(ruled - broken)}, missed {sorted(broken - ruled)}")
    if found_unordered != unordered:
        differs.append(f"without an order {sorted(found_unordered)}, truth {sorted(unordered)}")
    violated = {name for _, name in broken} | unordered
    for key in keys - cycles:
        truth = Outcome.VIOLATED if key in violated else _unless(key in doubted)
        if verdict.objects.get(key) is not truth:
            differs.append(f"{key} is {verdict.objects.get(key)}, truth is {truth}")
    truth = Outcome.VIOLATED if violated else _unless(bool(doubted))
    if (verdict.outcome is Outcome.VIOLATED) != bool(violated):
        differs.append(f"judge says {verdict.outcome}, truth is {truth}")
    return Compared(truth, verdict, differs)


def _is_cycle(rule: str) -> bool:
    return rule.startswith(("G0", "G1c"))


def _unless(is_doubted: bool) -> Outcome:
    return Outcome.UNDECIDED if is_doubted else Outcome.VALID


RULED: dict[str, Row] = {
    **{
        name: Row(make=partial(kafka_history, wishes), compare=_logs_compared)
        for name, wishes in WISHES.items()
    },
    "observations": Row(make=observed_history, compare=_observations_compared),
}
