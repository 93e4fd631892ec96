"""What registers begin with: nil, a value that is told, or nobody knows it.

That the checkers agree with the truth where it is told: `tests/agreement`.
"""

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.operations import operations
from jepsen_like.checkers.registers import beginning_with
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import INITIAL, MalformedHistory, Value
from tests.jepsen_like.play import Play

SAID = [(None, Outcome.VIOLATED), ([None], Outcome.VIOLATED), ([0], Outcome.VALID)]


def read_first(value: object, initial: list[object] | None) -> Play:
    play = Play(workload="register", options={} if initial is None else {INITIAL: initial})
    play.did(0, "read", ["x", None], ["x", value])
    play.did(0, "write", ["x", 5], None)
    return play


@pytest.mark.parametrize(("initial", "outcome"), [*SAID, ([], Outcome.UNDECIDED)])
def test_value_that_nobody_wrote_is_right_only_as_the_one_it_begins_with(
    initial: list[object] | None, outcome: Outcome
) -> None:
    assert judge(read_first(0, initial).history).outcome is outcome


@pytest.mark.parametrize(
    ("value", "option"),
    [(0, "--initial 0)"), (True, "--initial true)"), ("a b", """--initial '"a b"')""")],
)
def test_doubt_names_the_option_that_decides_it(value: object, option: str) -> None:
    verdict = judge(read_first(value, []).history)
    assert option in verdict.reason
    assert "--initial nil" in verdict.reason
    assert not verdict.findings


def test_doubt_shows_a_value_as_the_option_takes_it() -> None:
    verdict = judge(read_first([True, None], []).history)
    assert verdict.reason.startswith("x: [true, null] was seen and nobody had written it")


def test_what_no_single_value_explains_is_violated() -> None:
    """Read after it was overwritten; beside nil; beside another one."""
    for value in (0, None, 1):
        play = read_first(0, [])
        play.did(1, "read", ["x", None], ["x", value])
        assert judge(play.history).outcome is Outcome.VIOLATED


def test_only_the_key_that_is_doubted_is_undecided() -> None:
    play = read_first(0, [])
    play.did(1, "write", ["y", 1], None)
    play.did(1, "write", ["y", 2], None)
    assert judge(play.history).objects == {"x": Outcome.UNDECIDED, "y": Outcome.VALID}
    play.did(1, "read", ["y", None], ["y", 1])
    verdict = judge(play.history)
    assert verdict.objects == {"x": Outcome.UNDECIDED, "y": Outcome.VIOLATED}
    assert {each.object for each in verdict.findings} == {"y"}


def test_evidence_is_lines_of_the_history_only() -> None:
    play = Play(workload="register", options={INITIAL: [0]})
    for value in (5, 5):  # the same twice: this one is searched
        play.did(0, "write", ["x", value], None)
    play.did(0, "read", ["x", None], ["x", 0])
    (finding,) = judge(play.history).findings
    assert min(finding.ops) >= 0


@pytest.mark.parametrize("told", [0, [0, 1]])
def test_option_that_is_no_list_of_one_is_refused(told: Value) -> None:
    play = read_first(0, None)
    play.options[INITIAL] = told
    with pytest.raises(MalformedHistory, match="option initial"):
        judge(play.history)


@pytest.mark.parametrize(("initial", "outcome"), [*SAID, ([], Outcome.UNDECIDED)])
def test_value_that_was_seen_first_and_written_later_is_doubted_too(
    initial: list[object] | None, outcome: Outcome
) -> None:
    play = read_first(0, initial)
    play.did(0, "write", ["x", 0], None)
    assert judge(play.history).outcome is outcome
    play.did(0, "read", ["x", None], ["x", 5])
    assert judge(play.history).outcome is Outcome.VIOLATED


def test_value_that_was_expected_first_and_written_later_is_doubted_too() -> None:
    play = Play(workload="cas-register", options={INITIAL: []})
    play.did(0, "cas", ["x", [0, 5]], None)
    play.did(0, "write", ["x", 0], None)
    verdict = judge(play.history)
    assert verdict.outcome is Outcome.UNDECIDED
    assert verdict.reason.startswith("x: 0 was seen")


@pytest.mark.parametrize(("told", "version"), [([1, 2], 0), ([1, None], 0), ([None, None], None)])
def test_value_it_begins_with_has_version_zero_where_versions_are_told(
    told: list[int | None], version: int | None
) -> None:
    play = Play(workload="register")
    for value, each in enumerate(told):
        extra = {} if each is None else {"version": each}
        play.did(0, "write", ["x", value], None, **extra)
    first = beginning_with(operations(play.ops), 7)[0]
    assert (first.argument, first.extra.get("version")) == (["x", 7], version)
