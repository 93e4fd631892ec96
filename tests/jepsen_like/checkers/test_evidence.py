"""Evidence is the fewest operations: alone they break the rule, and none of them can be spared."""

from collections.abc import Callable, Collection

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.operations import Operation, operations
from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import History
from tests.jepsen_like.checkers.test_kafka_log import PLANTED, three_sent
from tests.jepsen_like.play import Play

# What was acknowledged and read by somebody, and is missing later, is not read by anybody in these
# lines alone: the same loss has another name then.
ALONE = {"vanished": ("unseen",)}
cases = pytest.mark.parametrize(("rule", "plant"), PLANTED)


def planted(rule: str, plant: Callable[[Play], None]) -> tuple[History, Finding]:
    play = three_sent()
    plant(play)
    findings = judge(play.history).findings
    return play.history, next(each for each in findings if each.rule == rule)


def rules_in(history: History, lines: Collection[int]) -> set[str]:
    """Broken by these lines, if nothing else had happened."""
    part = History(header=history.header, ops=[op for op in history.ops if op.index in lines])
    return {finding.rule for finding in judge(part).findings}


def evidence(history: History, finding: Finding) -> list[Operation]:
    lines = set(finding.ops)
    return [each for each in operations(history.ops) if lines.intersection(each.evidence)]


@cases
def test_no_operation_can_be_left_out(rule: str, plant: Callable[[Play], None]) -> None:
    history, finding = planted(rule, plant)
    for each in evidence(history, finding):
        assert rule not in rules_in(history, set(finding.ops).difference(each.evidence))


@cases
def test_evidence_alone_breaks_the_rule(rule: str, plant: Callable[[Play], None]) -> None:
    history, finding = planted(rule, plant)
    assert {rule, *ALONE.get(rule, ())} & rules_in(history, finding.ops)


@cases
def test_evidence_has_both_lines_of_at_most_three_operations(
    rule: str, plant: Callable[[Play], None]
) -> None:
    history, finding = planted(rule, plant)
    shown = evidence(history, finding)
    assert len(shown) <= 3
    assert sorted(index for each in shown for index in each.evidence) == sorted(finding.ops)
