"""Who may stand for leader, and when."""

import pytest

from broker.zk.by_replicas.held import ReplicaSettings
from broker.zk.by_replicas.leader_elections import Candidacy, Never, Stand, Wait, candidacy

SETTINGS = ReplicaSettings(election_wait_ms=1000, head_start_ms=100)
ALL = (1, 2, 3)


def asked(node_id: int, *, isr: tuple[int, ...] = ALL, waited_ms: int = 0) -> Candidacy:
    return candidacy(
        SETTINGS, node_id=node_id, replicas=ALL, isr=isr, live={1, 2, 3}, waited_ms=waited_ms
    )


def test_broker_that_is_not_assigned_never_stands() -> None:
    assert asked(4, isr=(4,), waited_ms=10_000) == Never()


def test_preferred_replica_stands_at_once() -> None:
    assert asked(1) == Stand(is_clean=True)


@pytest.mark.parametrize("isr", [ALL, ()], ids=["in sync", "of a new partition"])
def test_others_let_those_before_them_that_live_go_first(isr: tuple[int, ...]) -> None:
    assert asked(2, isr=isr) == Wait(100)
    assert asked(2, isr=isr, waited_ms=40) == Wait(60)
    assert asked(2, isr=isr, waited_ms=100) == Stand(is_clean=True)
    assert asked(3, isr=isr, waited_ms=100) == Wait(100)


def test_nobody_waits_for_a_replica_that_is_dead_or_not_in_sync() -> None:
    assert asked(2, isr=(2, 3)) == Stand(is_clean=True)
    dead = candidacy(SETTINGS, node_id=2, replicas=ALL, isr=ALL, live={2, 3}, waited_ms=0)
    assert dead == Stand(is_clean=True)


def test_without_a_head_start_all_rush() -> None:
    rush = ReplicaSettings(head_start_ms=0)
    may = candidacy(rush, node_id=3, replicas=ALL, isr=ALL, live={1, 2, 3}, waited_ms=0)
    assert may == Stand(is_clean=True)


def test_others_than_in_sync_replicas_stand_after_the_election_wait_time() -> None:
    assert asked(3, isr=(1, 2), waited_ms=999) == Wait(1)
    assert asked(3, isr=(1, 2), waited_ms=1000) == Stand(is_clean=False)


def test_others_than_in_sync_replicas_never_stand_where_that_is_not_allowed() -> None:
    strict = ReplicaSettings(is_unclean_allowed=False)
    may = candidacy(strict, node_id=3, replicas=ALL, isr=(1, 2), live={3}, waited_ms=10_000)
    assert may == Never()
