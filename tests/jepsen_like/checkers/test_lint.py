"""A history that is wrong itself is found out, and never used to accuse anybody."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.lint import lint
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import NEMESIS, TRUST_FAILURES, Kind
from tests.jepsen_like.play import Play

KEY = "chaos-0"


def overlap(play: Play) -> None:
    play.invoke(0, "poll", [["poll"]])
    play.invoke(0, "poll", [["poll"]])


def unmatched(play: Play) -> None:
    play.line(Kind.OK, 0, "poll", [["poll", {}]])


def other_f(play: Play) -> None:
    play.invoke(0, "poll", [["poll"]])
    play.line(Kind.OK, 0, "send", [["send", KEY, [9, 9]]])


def backwards(play: Play) -> None:
    play.send(0, KEY, 5, 5)
    play.ops[-1] = replace(play.ops[-1], time_ns=0)


def index_backwards(play: Play) -> None:
    play.send(0, KEY, 5, 5)
    play.ops[-1] = replace(play.ops[-1], index=0)


def reuse(play: Play) -> None:
    play.invoke(0, "send", [["send", KEY, 5]])
    play.info(0)
    play.poll(0, {})


def timed_out(play: Play) -> None:
    play.invoke(0, "send", [["send", KEY, 5]])
    failed = play.fail(0)
    play.ops[failed] = replace(play.ops[failed], error="REQUEST_TIMED_OUT (Timed out)")


def appended_and_failed(play: Play) -> None:
    play.invoke(0, "send", [["send", KEY, 5]])
    failed = play.fail(0)
    play.ops[failed] = replace(play.ops[failed], error="NOT_ENOUGH_REPLICAS_AFTER_APPEND")


def changed(play: Play) -> None:
    play.did(0, "send", [["send", KEY, 5]], [["send", KEY, [5, 6]]])


def written_another(play: Play) -> None:
    play.did(0, "write", [KEY, 5], [KEY, 6])


def read_of_another_key(play: Play) -> None:
    play.did(0, "read", [KEY, None], ["other-0", 6])


def appended_another(play: Play) -> None:
    play.did(0, "txn", [["append", KEY, 5]], [["append", KEY, 6]])


def wrote_another_key(play: Play) -> None:
    play.did(0, "txn", [["r", KEY, None], ["w", KEY, 5]], [["r", KEY, 1], ["w", "other-0", 5]])


def wrote_nothing(play: Play) -> None:
    play.did(0, "txn", [["w", KEY, 5]], [])


def transaction_read_another_key(play: Play) -> None:
    play.did(0, "txn", [["r", KEY, None]], [["r", "other-0", 6]])


TRANSACTIONS = [
    appended_another,
    wrote_another_key,
    wrote_nothing,
    transaction_read_another_key,
]
PLANTED: list[tuple[str, Callable[[Play], None]]] = [
    ("lint-overlap", overlap),
    ("lint-unmatched", unmatched),
    ("lint-unmatched", other_f),
    ("lint-backwards", backwards),
    ("lint-backwards", index_backwards),
    ("lint-reuse", reuse),
    ("lint-timed-out", timed_out),
    ("lint-timed-out", appended_and_failed),
    ("lint-changed", changed),
    ("lint-changed", written_another),
    ("lint-changed", read_of_another_key),
]


@pytest.mark.parametrize(("rule", "plant"), PLANTED)
def test_mistake_of_a_recorder_makes_the_verdict_undecided(
    rule: str, plant: Callable[[Play], None]
) -> None:
    play = Play()
    play.send(0, KEY, 1, 0)
    plant(play)
    play.read_all(9, {KEY: []})  # a violation, could it be believed
    assert rule in {finding.rule for finding in lint(play.ops)}
    verdict = judge(play.history)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "history itself" in verdict.reason


@pytest.mark.parametrize("plant", [timed_out, appended_and_failed])
def test_failures_that_are_trusted_are_judged_as_failures_and_counted(
    plant: Callable[[Play], None],
) -> None:
    play = Play(options={TRUST_FAILURES: True})
    play.send(0, KEY, 1, 0)
    plant(play)
    play.read_all(9, {KEY: [[0, 1]]})
    verdict = judge(play.history)
    assert verdict.outcome is Outcome.VALID
    assert verdict.counts["trusted failures"] == 1
    play.read_all(8, {KEY: [[0, 1], [1, 5]]})
    assert [each.rule for each in judge(play.history).findings] == ["G1a"]


def test_other_mistakes_of_a_recorder_are_not_trusted() -> None:
    play = Play(options={TRUST_FAILURES: True})
    play.send(0, KEY, 1, 0)
    reuse(play)
    verdict = judge(play.history)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "trusted failures" not in verdict.counts


@pytest.mark.parametrize("plant", TRANSACTIONS)
def test_transaction_that_did_another_thing_makes_the_verdict_undecided(
    plant: Callable[[Play], None],
) -> None:
    for workload in ("append", "rw-register"):
        play = Play(workload=workload)
        plant(play)
        assert [each.rule for each in lint(play.ops)] == ["lint-changed"]


def test_transaction_that_did_as_asked_is_believed() -> None:
    play = Play(workload="append")
    play.did(0, "txn", [["append", KEY, 5], ["r", KEY, None]], (("append", KEY, 5), ["r", KEY, 5]))
    play.did(0, "txn", [["append", KEY, 6]], None)
    play.did(0, "txn", [["r", KEY]], [["r", KEY, [5, 6]]])
    assert lint(play.ops) == []


def test_honest_history_passes() -> None:
    play = Play()
    play.line(Kind.INFO, NEMESIS, "kill", {"nodes": [1]})
    play.line(Kind.INFO, NEMESIS, "kill", {"nodes": [1]})
    play.line(Kind.OK, "node-1", "observe", {KEY: [1, 1, 1, [1]]})
    play.send(0, KEY, 1, 0)
    play.invoke(0, "poll", [["poll"]])
    failed = play.fail(0)
    play.ops[failed] = replace(play.ops[failed], error="timed out")
    play.invoke(0, "send", [["send", KEY, 2]])
    play.info(0)
    assert lint(play.ops) == []
