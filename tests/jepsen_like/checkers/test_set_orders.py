"""Lists of a set that are wrong only as a whole: each element by itself would pass."""

from collections.abc import Callable

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.precedence import Interval, contradiction
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import Value
from tests.jepsen_like.play import Play

LISTING, OTHER = 50, 51  # processes


def adding(*elements: Value) -> Play:
    """Their adds are open."""
    play = Play(workload="set")
    for process, element in enumerate(elements):
        play.invoke(process, "add", element)
    return play


def listed(play: Play, *lists: list[Value]) -> None:
    """All at once."""
    for process, _ in enumerate(lists, LISTING):
        play.invoke(process, "read")
    for process, each in enumerate(lists, LISTING):
        play.ok(process, each)


def listed_crosswise(play: Play) -> None:
    listed(play, ["x"], ["y"])


def listed_crosswise_by_unknown_adds(play: Play) -> None:
    listed(play, ["x"], ["y"])
    play.ok(0)
    play.info(1)


def listed_in_a_cycle(play: Play) -> None:
    listed(play, ["x"], ["x", "y"], ["y", "z"])


def listed_without_what_came_before(play: Play) -> None:
    """y was there before anybody asked for w."""
    play.invoke(LISTING, "read")
    play.ok(1)
    play.did(1, "add", "w", None)
    play.ok(LISTING, ["w"])


def removed_after_the_other_came(play: Play) -> None:
    """One list has x no more, and not yet y; another one has both."""
    play.ok(0)
    play.invoke(LISTING, "read")
    play.invoke(OTHER, "read")
    play.invoke(0, "remove", "x")
    play.ok(LISTING, ["x", "y"])
    play.ok(OTHER, [])


def removed_the_wrong_way_round(play: Play) -> None:
    """Each is removed and comes again; that needs an order of its own."""
    for process, element in enumerate("xyz"):
        play.ok(process)
        play.invoke(process, "remove", element)
    listed(play, ["x"], ["y"], ["z"], ["x", "y", "z"], [], ["x", "y"], ["z", "y"], ["z", "x"])


PLANTED = [
    listed_crosswise,
    listed_crosswise_by_unknown_adds,
    listed_in_a_cycle,
    listed_without_what_came_before,
    removed_after_the_other_came,
    removed_the_wrong_way_round,
]


@pytest.mark.parametrize("plant", PLANTED)
def test_lists_that_agree_in_no_order_are_found_with_the_elements(
    plant: Callable[[Play], None],
) -> None:
    play = adding("x", "y", "z")
    plant(play)
    verdict = judge(play.history)
    assert [each.rule for each in verdict.findings] == ["not-linearizable"]
    (finding,) = verdict.findings
    assert len(finding.object.split(", ")) > 1
    lists = [each for each in finding.ops if play.ops[each].f == "read"]
    assert lists
    for name in finding.object.split(", "):
        assert verdict.objects[name] is Outcome.VALID


def test_evidence_is_the_lists_and_the_adds() -> None:
    play = adding("x", "y", "z")
    listed_crosswise(play)
    (finding,) = judge(play.history).findings
    assert finding.object in ("x, y", "y, x")
    assert finding.ops == tuple(index for index in range(7) if index != 2)


def test_lists_that_grow_may_be_answered_in_any_order() -> None:
    play = adding("x", "y")
    listed(play, ["y", "x"], [], ["x", "y"], ["y"])
    assert judge(play.history).outcome is Outcome.VALID


def test_element_may_come_again_between_two_lists() -> None:
    play = adding("x", "y")
    play.did(LISTING, "read", None, ["x"])
    play.invoke(2, "remove", "x")
    play.did(LISTING, "read", None, ["y"])
    play.invoke(3, "add", "x")
    play.did(LISTING, "read", None, ["y", "x"])
    assert judge(play.history).outcome is Outcome.VALID


def test_list_may_be_open_while_an_element_comes_and_goes() -> None:
    play = Play(workload="set")
    play.invoke(LISTING, "read")
    play.did(0, "add", "x", None)
    play.did(0, "remove", "x", None)
    play.did(0, "add", "y", None)
    play.ok(LISTING, ["y"])
    assert judge(play.history).outcome is Outcome.VALID


def test_element_that_returns_is_not_listed_before_it_is_added() -> None:
    play = Play(workload="set")
    play.did(LISTING, "read", None, ["x"])
    for f in ("add", "remove", "add"):
        play.did(0, f, "x", None)
    assert judge(play.history).outcome is Outcome.VIOLATED


def test_what_only_a_search_decides_names_the_elements_if_it_is_late() -> None:
    play = adding(*range(10))
    for element in range(10):
        play.invoke(100 + element, "remove", element)
    listed(play, [0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [0, 5], [1, 6])
    verdict = judge(play.history, Budget(is_late=lambda: True))
    assert verdict.outcome is Outcome.UNDECIDED
    assert verdict.reason.startswith("0, 1, 2, 3 and 6 more: not decided")


@pytest.mark.parametrize("shown", [[1, "1", True], [1, "1"], ["1"], []])
def test_elements_whose_texts_are_equal_have_names_of_their_own(shown: list[Value]) -> None:
    play = Play(workload="set")
    every: list[Value] = [1, "1", True]
    for element in every:
        play.did(0, "add", element, None)
    play.did(1, "read", None, shown)
    verdict = judge(play.history)
    assert set(verdict.objects) == {"1", "'1'", "True"}
    lost = {each.object for each in verdict.findings}
    assert lost == {"1", "'1'", "True"} - {repr(each) for each in shown}


def test_moments_behind_each_other_have_an_order_if_none_comes_too_late() -> None:
    early, late, whole = Interval(0, 3), Interval(5, 8), Interval(0, 9)
    assert contradiction([early, whole, late], {0: [1], 1: [2]}) == []
    assert contradiction([late, whole, early], {0: [1], 1: [2]}) == [0, 1, 2]
    assert sorted(contradiction([whole, whole, whole], {0: [1], 1: [0, 2]})) == [0, 1]
