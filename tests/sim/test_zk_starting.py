"""zk-v3 as it starts: a controller that takes over, a broker that comes back, replicas that die."""

import pytest

from tests.sim.zookeeper import Administrator, Producer, Scene, T, begin, of
from wire.zk import paths
from wire.zk.designs import ZK_V3


@pytest.fixture
def cluster() -> Scene:
    return begin(ZK_V3)


def test_next_controller_does_what_was_asked_for_while_there_was_none() -> None:
    """D.5 to D.9, in one take-over: who has died, new topics, moves, additions and removals."""
    cluster = begin(ZK_V3, agent_wake_ms=3000)
    admin = Administrator(cluster)
    old = cluster.controller
    one, two = cluster.others
    admin.create_topic("t", {0: (one,), 1: (one, two), 2: (old, one)})
    cluster.run_until(lambda: cluster.leaders(of("t", 2)) == [old])
    cluster.crash(old)
    admin.create_topic("u", {0: (two, one)})
    admin.ask_under(paths.PARTITIONS_REASSIGNED, 0, (two,))
    admin.ask_under(paths.PARTITIONS_ADD, 3, (two, one))
    admin.ask_under(paths.PARTITIONS_REMOVE, 1, None)
    assert cluster.active_controller is None
    cluster.run_until(lambda: cluster.active_controller not in (None, old))
    cluster.run(500)
    state = cluster.state(of("t", 2))
    assert (state.leader, state.isr) == (one, (one,)), "D.5"
    assert cluster.leaders(of("u")) == [two], "D.6"
    assert cluster.replica(two) is not None, "D.7"
    cluster.run_until(lambda: cluster.leaders() == [two])
    assert cluster.leaders(of("t", 3)) == [two]
    assert admin.assignment() == {0: (two,), 2: (old, one), 3: (two, one)}, "D.8 and D.9"


def test_broker_that_is_back_before_anybody_noticed_leads_what_it_led(cluster: Scene) -> None:
    """E.3.2: "shouldn't happen in general"."""
    admin = Administrator(cluster)
    away = cluster.others[0]
    admin.create_topic("t", {0: (away,)})
    cluster.run_until(lambda: cluster.leaders() == [away])
    cluster.crash(away)
    cluster.restart(away)
    cluster.run_until(lambda: cluster.leaders() == [away], ms_max=500)
    state = cluster.state()
    assert state.leader_epoch == 0, "no election"


def test_f_plus_one_replicas_lose_nothing_when_f_have_died(cluster: Scene) -> None:
    """Seed 004: three replicas in sync outlive two, where a majority would outlive one."""
    told = cluster.write(partitions=1)
    for _ in range(2):
        (leader,) = cluster.leaders(of("orders"))
        cluster.crash(leader)
        cluster.run_until(lambda: len(cluster.leaders(of("orders"))) == 1)
        cluster.run(2000)
    before = len(told.acknowledged)
    cluster.run(2000)
    assert len(told.acknowledged) > before > 20
    cluster.run_until(lambda: len(told.unread) < 10)


def test_record_is_acknowledged_before_it_is_on_a_disk(cluster: Scene) -> None:
    """Seed 004: "not guaranteed to be persisted to disk", so that a power cut everywhere takes it
    away."""
    admin, client = Administrator(cluster), Producer(cluster)
    admin.create_topic("t", {0: (1, 2, 3)})
    cluster.run_until(lambda: cluster.leaders() == [1])
    cluster.run(500)
    answers = client.send(1, T, b"in three memories")
    cluster.run_until(lambda: bool(answers))
    ends = [found.open_log.end_offset for each in (1, 2, 3) if (found := cluster.replica(each))]
    assert ends == [1, 1, 1]
    for each in (1, 2, 3):
        cluster.crash(each, power_loss=True)
    for each in (1, 2, 3):
        cluster.restart(each)
    cluster.run_until(lambda: len(cluster.leaders()) == 1)
    cluster.run(500)
    (leader,) = cluster.leaders()
    led = cluster.held(leader)
    assert led.open_log.end_offset == 0
