"""Rules over messages: which they match, which of those they strike, what they keep."""

from random import Random

import pytest

from jepsen_like.faults.message_rules import (
    ALWAYS,
    Action,
    Armed,
    Frame,
    FrameRule,
    Rules,
    Trigger,
    api_key_of,
)
from jepsen_like.faults.participants import CLIENTS

ALTER_PARTITION = 56


def hits(trigger: Trigger, count: int = 10, seed: int = 1) -> list[int]:
    """The numbers of those that a rule with this trigger takes, from 1."""
    rules: Rules[int] = Rules(Random(seed))
    rules.arm(Armed(lambda _: True, trigger=trigger))
    return [number for number in range(1, count + 1) if rules.taking(number) is not None]


def test_always_strikes_every_message() -> None:
    assert hits(ALWAYS) == list(range(1, 11))


def test_once_strikes_the_first() -> None:
    assert hits(Trigger(count=1)) == [1]


def test_times_strikes_so_many() -> None:
    assert hits(Trigger(count=3)) == [1, 2, 3]


def test_with_probability_strikes_some_and_the_seed_says_which() -> None:
    found = hits(Trigger(probability=0.5), 1000)
    assert 400 < len(found) < 600
    assert found == hits(Trigger(probability=0.5), 1000)
    assert found != hits(Trigger(probability=0.5), 1000, seed=2)


def test_rule_matches_by_sender_receiver_api_and_direction() -> None:
    rule = FrameRule(
        action=Action.HOLD, source=1, target=101, api_key=ALTER_PARTITION, is_request=True
    )
    asked = Frame(source=1, target=101, api_key=ALTER_PARTITION, is_request=True)
    assert rule.matches(asked)
    assert str(rule) == "hold the request of alter_partition, 1 -> 101, always()"
    for other in (
        Frame(source=2, target=101, api_key=ALTER_PARTITION, is_request=True),
        Frame(source=1, target=102, api_key=ALTER_PARTITION, is_request=True),
        Frame(source=1, target=101, api_key=1, is_request=True),
        Frame(source=1, target=101, api_key=ALTER_PARTITION, is_request=False),
    ):
        assert not rule.matches(other)


def test_rule_without_ends_matches_everybody() -> None:
    rule = FrameRule(action=Action.DROP, api_key=0, is_request=True)
    assert rule.matches(Frame(source=CLIENTS, target=1, api_key=0, is_request=True))
    assert str(rule) == "drop the request of produce, any -> any, always()"


@pytest.mark.parametrize("name", ["alter_partition", "AlterPartition"])
def test_api_is_known_by_both_names(name: str) -> None:
    assert api_key_of(name) == ALTER_PARTITION


def test_unknown_api_is_refused() -> None:
    with pytest.raises(ValueError, match="LeaderAndIsr"):
        api_key_of("LeaderAndIsr")


def test_first_rule_that_takes_a_message_has_it() -> None:
    rules: Rules[str] = Rules(Random(0))
    first = rules.arm(Armed(lambda _: True, trigger=Trigger(count=1)))
    second = rules.arm(Armed(lambda _: True, action=Action.DROP))
    assert [rules.taking(text) for text in "abc"] == [first, second, second]
    assert (first.calls, first.fired, second.calls, second.fired) == (1, 1, 2, 2)


def test_what_is_kept_goes_on_in_order_once() -> None:
    rule: Armed[int] = Armed(lambda _: True)
    arrived: list[int] = []
    for number in range(3):
        assert rule.takes(number, Random(0))
        rule.kept.append(lambda number=number: arrived.append(number))  # type: ignore[misc]
    rule.release()
    rule.release()
    assert arrived == [0, 1, 2]
    assert not rule.takes(3, Random(0)), "a rule that was released takes nothing more"


def test_what_is_dropped_never_goes_on() -> None:
    rule: Armed[int] = Armed(lambda _: True)
    rule.kept.append(lambda: pytest.fail("it arrived"))
    rule.drop()
    rule.release()


def test_rules_that_are_over_are_forgotten() -> None:
    rules: Rules[int] = Rules(Random(0))
    rules.arm(Armed(lambda _: True)).drop()
    later = rules.arm(Armed(lambda _: True))
    assert rules.taking(1) is later
    rules.release_all()
    assert not rules
