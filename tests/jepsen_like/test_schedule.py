"""Schedules of faults: enough of them, every kind, and never more nodes away than may be."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen_like.faults.fault import Role, Scheduled
from jepsen_like.faults.fault_schedule import draw_schedule
from jepsen_like.faults.kinds import KINDS, clash, kind_and_role

SAMPLE = st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4, unique=True)
SEEDS = st.integers(0, 10_000)


@given(SEEDS, SAMPLE)
def test_same_seed_draws_the_same_schedule(seed: int, kinds: list[str]) -> None:
    drawn = [draw_schedule(seed=seed, kinds=kinds, seconds=60) for _ in range(2)]
    assert drawn[0] == drawn[1]


@given(SEEDS, SAMPLE)
def test_every_kind_comes_and_more_than_one_fault_every_ten_seconds(
    seed: int, kinds: list[str]
) -> None:
    drawn = draw_schedule(seed=seed, kinds=kinds, seconds=60)
    assert {each.fault.kind for each in drawn} == set(kinds)
    if kinds != ["rolling-restart"]:
        # A restart of one broker after the other takes twice as long.
        long = sum(each.fault.kind == "rolling-restart" for each in drawn)
        assert len(drawn) + long >= 6


@given(SEEDS, st.booleans())
def test_all_kinds_fit_into_four_minutes(seed: int, combined: bool) -> None:
    drawn = draw_schedule(seed=seed, kinds=sorted(KINDS), seconds=240, combined=combined)
    assert {each.fault.kind for each in drawn} == set(KINDS)


@given(SEEDS, SAMPLE, st.integers(5, 120))
def test_faults_come_in_order_and_end_with_the_run(
    seed: int, kinds: list[str], seconds: int
) -> None:
    drawn = draw_schedule(seed=seed, kinds=kinds, seconds=seconds)
    assert [each.at_ms for each in drawn] == sorted(each.at_ms for each in drawn)
    assert all(each.lasts_ms > 0 for each in drawn)
    assert all(each.at_ms + each.lasts_ms <= seconds * 1000 for each in drawn)


@given(SEEDS, SAMPLE)
def test_only_one_of_the_voters_or_of_the_brokers_is_away_at_a_time(
    seed: int, kinds: list[str]
) -> None:
    voters = {Role.ACTIVE_CONTROLLER, Role.ONE_CONTROLLER, Role.MINORITY, Role.ALL, Role.ONE}
    brokers = {Role.LEADER, Role.ONE_BROKER, Role.BROKERS, Role.ALL, Role.ONE}
    drawn = draw_schedule(seed=seed, kinds=kinds, seconds=60)
    away = [each for each in drawn if KINDS[each.fault.kind].takes_away]
    for group in (voters, brokers):
        of_group = [each for each in away if each.fault.role in group]
        for one, next_one in pairwise(of_group):
            assert one.at_ms + one.lasts_ms <= next_one.at_ms


@given(SEEDS)
def test_nodes_that_are_both_are_one_group(seed: int) -> None:
    drawn = draw_schedule(seed=seed, kinds=["kill", "pause"], seconds=60, combined=True)
    for one, next_one in pairwise(drawn):
        assert one.at_ms + one.lasts_ms <= next_one.at_ms


def test_pairs_overlap_now_and_then() -> None:
    def overlaps(drawn: tuple[Scheduled, ...]) -> int:
        pairs = pairwise(drawn)
        return sum(one.at_ms + one.lasts_ms > other.at_ms for one, other in pairs)

    drawn = [draw_schedule(seed=seed, kinds=["kill", "delay"], seconds=60) for seed in range(10)]
    assert sum(map(overlaps, drawn)) >= 10


def test_role_that_is_wanted_is_the_role() -> None:
    drawn = draw_schedule(seed=1, kinds=["kill:majority"], seconds=60)
    assert {each.fault.role for each in drawn} == {Role.MAJORITY}


def test_nothing_wanted_is_nothing_drawn() -> None:
    assert draw_schedule(seed=1, kinds=[], seconds=60) == ()


def test_proxies_and_namespaces_are_not_had_together() -> None:
    assert clash(["kill", "partition", "netns-loss"]) == ("partition", "netns-loss")
    assert clash(["netns-partition", "kill", "hold-rpc"]) == ("netns-partition", "hold-rpc")
    assert clash(["netns-partition", "netns-loss", "kill", "slow-disk"]) is None
    assert clash(["partition", "hold-rpc", "pause"]) is None


@pytest.mark.parametrize("wanted", ["earthquake", "kill:everyone"])
def test_unknown_kind_or_role_is_refused_with_what_there_is(wanted: str) -> None:
    with pytest.raises(ValueError, match="there are"):
        kind_and_role(wanted)
