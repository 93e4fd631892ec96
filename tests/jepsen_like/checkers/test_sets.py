"""A set: each kind of violation is found; one element agrees with trying all orders."""

from collections.abc import Callable, Sequence
from random import Random

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.operations import NEVER, Operation, operations
from jepsen_like.history import Kind, MalformedHistory
from jepsen_like.verdict import Outcome
from tests.jepsen_like.checkers.oracle import is_linearizable
from tests.jepsen_like.play import Play

HISTORIES = 300


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


@pytest.mark.parametrize(
    ("rule", "plant"),
    [
        ("lost-element", lost),
        ("lost-element", lost_after_it_was_seen),
        ("removed-element", came_back),
        ("phantom", phantom),
        ("phantom", listed_early),
        ("G1a", failed),
        ("nonmonotonic-read", stale_went_back),
        ("nonmonotonic-read", stale_came_back),
    ],
)
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


def steps(state: tuple[bool, bool], operation: Operation) -> Sequence[tuple[bool, bool]]:
    """One element: whether it was added, and removed."""
    was_added, was_removed = state
    match operation.f:
        case "add":
            return [(True, was_removed)]
        case "remove":
            return [(was_added, True)] if was_added else []
        case _:
            is_there = was_added and not was_removed
            return [state] if (operation.result == ["x"]) == is_there else []


def random_element(random: Random) -> Play:
    """Its add, its removal, and lists by others; some of them lie."""
    play = Play(workload="set")
    state = [False, False]
    changes = ["add", "remove"]
    pending: dict[int, str] = {}
    for number in range(random.randint(8, 16)):
        if 0 not in pending and changes and random.random() < 0.3:
            pending[0] = changes.pop(0)
            play.invoke(0, pending[0], "x")
        elif random.random() < 0.5 and len(pending) < 3:
            pending[number + 1] = "read"
            play.invoke(number + 1, "read")
        elif pending:
            process = random.choice(sorted(pending))
            f = pending.pop(process)
            if f == "read":
                is_there = state == [True, False]
                told = is_there != (random.random() < 0.25)
                play.ok(process, ["x"] if told else [])
            else:
                state[f == "remove"] = True
                play.info(process) if random.random() < 0.2 else play.ok(process)
    return play


def test_element_is_judged_as_by_trying_all_orders() -> None:
    outcomes = {Outcome.VALID: 0, Outcome.VIOLATED: 0}
    for number in range(HISTORIES):
        play = random_element(Random(f"set-{number}"))
        paired = [each for each in operations(play.ops) if each.f != "read" or each.ret != NEVER]
        is_valid = is_linearizable(paired, (False, False), steps)
        outcome = judge(play.history).outcome if not reused(play) else None
        if outcome is not None:
            assert (outcome is Outcome.VALID) == is_valid, (number, play.ops)
            outcomes[outcome] += 1
    assert min(outcomes.values()) > HISTORIES // 10, outcomes


def reused(play: Play) -> bool:
    """The removal followed an add of unknown end in the same process: no honest history."""
    return any(op.kind is Kind.INFO and op.f == "add" for op in play.ops)
