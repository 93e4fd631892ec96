"""Whom a role means, as those who lead change and others are under a fault already."""

from random import Random

import pytest

from jepsen_like.faults.fault import Role
from jepsen_like.faults.nemesis import Roles

BROKERS = (1, 2, 3)
VOTERS = (101, 102, 103)


def roles(
    active: int | None = 102, leaders: tuple[int, ...] = (2, 3), brokers: tuple[int, ...] = BROKERS
) -> Roles:
    return Roles(
        controllers=VOTERS,
        brokers=brokers,
        active_controller=lambda: active,
        partition_leaders=lambda: leaders,
        random=Random(1),
        zookeepers=(201,),
    )


@pytest.mark.parametrize(
    ("role", "among", "count"),
    [
        (Role.ACTIVE_CONTROLLER, {102}, 1),
        (Role.LEADER, {2, 3}, 1),
        (Role.ONE, {*BROKERS, *VOTERS}, 1),
        (Role.ONE_BROKER, set(BROKERS), 1),
        (Role.ONE_CONTROLLER, set(VOTERS), 1),
        (Role.ONE_ZOOKEEPER, {201}, 1),
        (Role.MINORITY, set(VOTERS), 1),
        (Role.MAJORITY, set(VOTERS), 2),
        (Role.BROKERS, set(BROKERS), 3),
        (Role.ALL, {*BROKERS, *VOTERS}, 6),
    ],
)
def test_role_names_nodes(role: Role, among: set[int], count: int) -> None:
    asked = roles()
    found = [tuple(asked.nodes_of(role)) for _ in range(50)]
    assert all(len(set(nodes)) == count for nodes in found)
    assert set().union(*found) == among


def test_any_node_is_one_that_no_fault_has_yet() -> None:
    asked = roles()
    for _ in range(20):
        assert asked.nodes_of(Role.ONE_BROKER, faulty=(1, 2)) == [3]
        assert asked.nodes_of(Role.LEADER, faulty=(2,)) == [3]


def test_nobody_has_a_role_that_is_vacant() -> None:
    vacant = roles(active=None, leaders=())
    assert vacant.nodes_of(Role.ACTIVE_CONTROLLER) == []
    assert vacant.nodes_of(Role.ONE_BROKER, faulty=BROKERS) == []
    assert vacant.nodes_of(Role.LEADER) != [], "without partitions any broker will do"


def test_a_quorum_alone_serves_as_its_own_brokers() -> None:
    alone = roles(leaders=(), brokers=())
    assert set(alone.nodes_of(Role.LEADER)) <= set(VOTERS)
    assert alone.nodes_of(Role.BROKERS) == sorted(VOTERS)
