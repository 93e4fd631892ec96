"""Which flows a partition cuts, for three controllers and three brokers."""

from itertools import count
from pathlib import Path

import pytest

from jepsen_like.faults import Fault
from jepsen_like.real.injection.ways import Way, around, bridge, one_way, ring
from jepsen_like.real.layout import ClusterLayout, plan
from jepsen_like.rules import CLIENTS

NODES = {1, 2, 3, 101, 102, 103}


@pytest.fixture
def layout(tmp_path: Path) -> ClusterLayout:
    return plan(
        tmp_path,
        cluster_id="c" * 22,
        controllers=3,
        brokers=3,
        combined=False,
        ports=count(20_000),
        proxies=True,
    )


def fault(**parameters: object) -> Fault:
    return Fault(kind="partition", parameters=parameters)


def test_targets_are_cut_from_everybody_else_both_ways(layout: ClusterLayout) -> None:
    ways = around(layout, fault(), [101, 1])
    assert ways == {way for a in (101, 1) for b in NODES - {101, 1} for way in ((a, b), (b, a))}


def test_clients_are_cut_off_only_if_wanted(layout: ClusterLayout) -> None:
    assert (1, CLIENTS) not in around(layout, fault(), [1])
    assert {(1, CLIENTS), (CLIENTS, 1)} < around(layout, fault(clients=True), [1])


def test_one_way_loses_what_the_targets_say_or_are_told(layout: ClusterLayout) -> None:
    out = one_way(layout, fault(direction="out"), [101])
    assert out == {(101, other) for other in NODES - {101}}
    told = one_way(layout, fault(direction="in"), [101])
    assert told == {(other, 101) for other in NODES - {101}}


def test_in_a_ring_each_hears_a_majority_and_no_two_the_same(layout: ClusterLayout) -> None:
    ways = ring(layout, fault(), [])
    for group in ({1, 2, 3}, {101, 102, 103}):
        heard = {node: frozenset(group - {a for a, b in ways if b == node}) for node in group}
        assert all(len(each) == 2 and node in each for node, each in heard.items())
        assert len(set(heard.values())) == 3
    assert not any((a < 100) != (b < 100) for a, b in ways)


@pytest.mark.parametrize("in_common", [101, 2])
def test_bridge_is_all_that_two_halves_have_in_common(
    layout: ClusterLayout, in_common: int
) -> None:
    ways = bridge(layout, fault(), [in_common])
    assert not any(in_common in way for way in ways)
    rest = NODES - {in_common}
    reached: dict[int, set[int]] = {node: _reached(node, rest, ways) for node in rest}
    halves = {frozenset(each) for each in reached.values()}
    assert len(halves) == 2
    assert min(len(half) for half in halves) == 2


def _reached(node: int, nodes: set[int], ways: set[Way]) -> set[int]:
    return {other for other in nodes if (node, other) not in ways}
