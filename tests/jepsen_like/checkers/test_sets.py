"""A set: each kind of violation is found, and what is no violation passes."""

from collections.abc import Callable

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import MalformedHistory
from tests.jepsen_like.play import Play


def added_and_removed() -> Play:
    play = Play(workload="set")
    play.did(0, "add", "a", None)
    play.did(0, "add", "b", None)
    play.did(0, "remove", "b", None)
    return play


def lost(play: Play) -> None:
    play.did(1, "read", None, [])


def lost_after_it_was_seen(play: Play) -> None:
    play.invoke(0, "add", "c")
    play.info(0)
    play.did(1, "read", None, ["a", "c"])
    play.did(1, "read", None, ["a"])


def came_back(play: Play) -> None:
    play.did(1, "read", None, ["a", "b"])


def phantom(play: Play) -> None:
    play.did(1, "read", None, ["a", "z"])


def listed_early(play: Play) -> None:
    play.did(1, "read", None, ["a", "c"])
    play.did(0, "add", "c", None)


def failed(play: Play) -> None:
    play.invoke(0, "add", "c")
    play.fail(0)
    play.did(1, "read-stale", None, ["a", "c"])


def stale_went_back(play: Play) -> None:
    play.did(1, "read-stale", None, ["a"], node=2)
    play.did(1, "read-stale", None, [], node=2)


def stale_came_back(play: Play) -> None:
    for listed in (["a", "b"], ["a"], ["a", "b"]):
        play.did(1, "read-stale", None, listed, node=2)


PLANTED: list[tuple[str, Callable[[Play], None]]] = [
    ("lost-element", lost),
    ("lost-element", lost_after_it_was_seen),
    ("removed-element", came_back),
    ("phantom", phantom),
    ("phantom", listed_early),
    ("G1a", failed),
    ("nonmonotonic-read", stale_went_back),
    ("nonmonotonic-read", stale_came_back),
]


@pytest.mark.parametrize(("rule", "plant"), PLANTED)
def test_planted_violation_is_found_with_its_operations(
    rule: str, plant: Callable[[Play], None]
) -> None:
    play = added_and_removed()
    plant(play)
    verdict = judge(play.history)
    assert [finding.rule for finding in verdict.findings] == [rule]
    assert all(finding.ops for finding in verdict.findings)


def test_stale_lists_of_different_nodes_may_differ() -> None:
    play = added_and_removed()
    play.did(1, "read-stale", None, ["a", "b"], node=1)
    play.did(1, "read-stale", None, [], node=2)
    play.did(1, "read-stale", None, ["a"], node=1)
    play.did(1, "read", None, ["a"])
    assert judge(play.history).outcome is Outcome.VALID


def test_unknown_removal_leaves_both_possible() -> None:
    for listed in (["a"], []):
        play = added_and_removed()
        play.invoke(0, "remove", "a")
        play.info(0)
        play.did(1, "read", None, listed)
        assert judge(play.history).outcome is Outcome.VALID


def test_list_that_is_none_says_where_it_is() -> None:
    play = added_and_removed()
    play.did(1, "read", None, 7)
    with pytest.raises(MalformedHistory, match="no list"):
        judge(play.history)


LISTED_AFTER = [
    ([("add", "d"), ("add", "d")], ["d"], Outcome.VALID),
    ([("add", "d"), ("remove", "d"), ("add", "d")], ["d"], Outcome.VALID),
    ([("add", "d"), ("remove", "d"), ("add", "d")], [], Outcome.VIOLATED),
    ([("remove", "d"), ("add", "d")], ["d"], Outcome.VALID),
    ([("remove", "d"), ("add", "d")], [], Outcome.VIOLATED),
]


@pytest.mark.parametrize(("done", "listed", "outcome"), LISTED_AFTER)
def test_element_may_be_added_again_and_removed_in_vain(
    done: list[tuple[str, str]], listed: list[str], outcome: Outcome
) -> None:
    play = Play(workload="set")
    for f, element in done:
        play.did(0, f, element, None)
        if f == "add":
            play.did(1, "read", None, ["d"])
    play.did(1, "read-stale", None, ["d"])
    play.did(1, "read", None, listed)
    assert judge(play.history).outcome is outcome


def test_operation_that_no_set_has_says_where_it_is() -> None:
    play = added_and_removed()
    play.did(1, "clear", None, None)
    with pytest.raises(MalformedHistory, match="a set has no 'clear'"):
        judge(play.history)


def add_open_while_it_is_removed(end: Callable[[Play], int]) -> Play:
    """The removal may have come first, and found nothing."""
    play = Play(workload="set")
    play.invoke(0, "add", "d")
    play.did(1, "remove", "d", None)
    play.did(1, "read", None, ["d"])
    end(play)
    return play


@pytest.mark.parametrize("end", [lambda play: play.ok(0), lambda play: play.info(0)])
def test_removal_during_an_add_may_remove_nothing(end: Callable[[Play], int]) -> None:
    play = add_open_while_it_is_removed(end)
    assert judge(play.history).outcome is Outcome.VALID
    play.did(1, "read", None, [])
    play.did(1, "remove", "d", None)
    (finding,) = judge(play.history).findings
    assert finding.rule == "lost-element"


def test_element_may_come_and_go_while_it_is_added() -> None:
    play = Play(workload="set")
    play.invoke(0, "add", "d")
    play.did(1, "remove", "d", None)
    play.ok(0)
    play.did(1, "read", None, [])
    assert judge(play.history).outcome is Outcome.VALID


def test_list_may_name_an_element_twice() -> None:
    play = Play(workload="set")
    play.did(0, "add", "d", None)
    play.did(0, "add", "d", None)
    play.did(1, "read", None, ["d", "d"])
    assert judge(play.history).outcome is Outcome.VALID
    play.did(1, "read", None, [])
    assert judge(play.history).outcome is Outcome.VIOLATED


def test_stale_lists_may_go_back_where_nobody_told_whom_they_asked() -> None:
    play = added_and_removed()
    play.did(1, "read-stale", None, ["a"])
    play.did(1, "read-stale", None, [])
    assert judge(play.history).outcome is Outcome.VALID
