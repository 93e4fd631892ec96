"""Which directions a fault lies on, for three controllers and three brokers."""

from collections.abc import Sequence

import pytest

from jepsen_like.faults.cut_links import CUTS, Direction, around, bridge, one_way, ring
from jepsen_like.faults.fault import Fault
from jepsen_like.faults.participants import CLIENTS

GROUPS = ((101, 102, 103), (1, 2, 3))
NODES = {1, 2, 3, 101, 102, 103}


def fault(**parameters: object) -> Fault:
    return Fault(kind="partition", parameters=parameters)


def test_targets_are_cut_from_everybody_else_in_both_directions() -> None:
    directions = around(GROUPS, fault(), [101, 1])
    assert set(directions) == {
        direction for a in (101, 1) for b in NODES - {101, 1} for direction in ((a, b), (b, a))
    }


def test_where_everybody_is_a_target_the_links_between_them_are_cut() -> None:
    directions = around(GROUPS, fault(), sorted(NODES))
    assert set(directions) == {(one, other) for one in NODES for other in NODES if one != other}
    assert len(directions) == len(set(directions))


def test_clients_are_cut_off_only_if_wanted() -> None:
    assert (1, CLIENTS) not in around(GROUPS, fault(), [1])
    assert {(1, CLIENTS), (CLIENTS, 1)} < {*around(GROUPS, fault(clients=True), [1])}


def test_one_way_loses_what_the_targets_say_or_are_told() -> None:
    out = one_way(GROUPS, fault(direction="out"), [101])
    assert set(out) == {(101, other) for other in NODES - {101}}
    told = one_way(GROUPS, fault(direction="in"), [101])
    assert set(told) == {(other, 101) for other in NODES - {101}}


def test_broker_is_cut_from_controllers_alone() -> None:
    out = {(1, controller) for controller in (101, 102, 103)}
    back = {(controller, broker) for broker, controller in out}
    cut = CUTS["cut-controllers"]
    assert set(cut(GROUPS, fault(), [1])) == out | back
    assert set(cut(GROUPS, fault(direction="out"), [1])) == out
    assert set(cut(GROUPS, fault(direction="in"), [1])) == back


def test_other_side_of_a_cut_may_be_named() -> None:
    assert set(around(GROUPS, fault(others=[2]), [1])) == {(1, 2), (2, 1)}


def test_in_a_ring_each_hears_a_majority_and_no_two_the_same() -> None:
    directions = ring(GROUPS, fault(), [])
    for group in ({1, 2, 3}, {101, 102, 103}):
        heard = {node: frozenset(group - {a for a, b in directions if b == node}) for node in group}
        assert all(len(each) == 2 and node in each for node, each in heard.items())
        assert len(set(heard.values())) == 3
    assert not any((a < 100) != (b < 100) for a, b in directions)


@pytest.mark.parametrize("in_common", [101, 2])
def test_bridge_is_all_that_two_halves_have_in_common(in_common: int) -> None:
    directions = bridge(GROUPS, fault(), [in_common])
    assert not any(in_common in direction for direction in directions)
    rest = NODES - {in_common}
    reached: dict[int, set[int]] = {node: _reached(node, rest, directions) for node in rest}
    halves = {frozenset(each) for each in reached.values()}
    assert len(halves) == 2
    assert min(len(half) for half in halves) == 2


def _reached(node: int, nodes: set[int], directions: Sequence[Direction]) -> set[int]:
    return {other for other in nodes if (node, other) not in directions}


def test_a_node_that_is_in_both_groups_is_in_one_half() -> None:
    combined = ((1, 2, 3), (1, 2, 3))
    assert set(bridge(combined, fault(), [1])) == {(2, 3), (3, 2)}
    assert len(around(combined, fault(), [1])) == 4
