"""zk-v3 as it starts: a controller that takes over, a broker that comes back, replicas that die."""

import pytest

from jepsen_like.sim.assemblies.designs.zk_cluster import ZkCluster
from tests.sim.zookeeper import (
    Administrator,
    Producer,
    begin,
    leaders,
    of,
    replica,
    state_of,
    write_to,
)
from wire.zk import paths
from wire.zk.designs import ZK_V3
from wire.zk.session import Create
from wire.zk.znodes import ReplicaList, TopicAssignment

T = of("t")


@pytest.fixture
def cluster() -> ZkCluster:
    return begin(ZK_V3)


def assignment(admin: Administrator, topic: str) -> dict[int, tuple[int, ...]]:
    data = admin.data(paths.topic(topic))
    assert data is not None
    return dict(TopicAssignment.decode(data).partitions)


def ask(admin: Administrator, root: str, partition: int, data: bytes = b"") -> None:
    path = paths.partition_under(root, "t", partition)
    admin.do(Create(path=paths.parent(path)))
    admin.do(Create(path=path, data=data))


def test_next_controller_does_what_was_asked_for_while_there_was_none() -> None:
    """D.5 to D.9, in one take-over: who has died, new topics, moves, additions and removals."""
    cluster = begin(ZK_V3, agent_wake_ms=3000)
    admin = Administrator(cluster)
    old = cluster.active_controller
    assert old is not None
    one, two = (each for each in (1, 2, 3) if each != old)
    admin.create_topic("t", {0: (one,), 1: (one, two), 2: (old, one)})
    cluster.run_until(lambda: leaders(cluster, of("t", 2)) == [old])
    cluster.crash(old)
    admin.create_topic("u", {0: (two, one)})
    ask(admin, paths.PARTITIONS_REASSIGNED, 0, ReplicaList(replicas=(two,)).encode())
    ask(admin, paths.PARTITIONS_ADD, 3, ReplicaList(replicas=(two, one)).encode())
    ask(admin, paths.PARTITIONS_REMOVE, 1)
    assert cluster.active_controller is None
    cluster.run_until(lambda: cluster.active_controller not in (None, old))
    cluster.run(500)
    state = state_of(cluster, admin, of("t", 2))
    assert state is not None
    assert (state.leader, state.isr) == (one, (one,)), "D.5"
    assert leaders(cluster, of("u")) == [two], "D.6"
    assert replica(cluster, two, T) is not None, "D.7"
    cluster.run_until(lambda: leaders(cluster, T) == [two])
    assert leaders(cluster, of("t", 3)) == [two]
    assert assignment(admin, "t") == {0: (two,), 2: (old, one), 3: (two, one)}, "D.8 and D.9"


def test_broker_that_is_back_before_anybody_noticed_leads_what_it_led(cluster: ZkCluster) -> None:
    """E.3.2: "shouldn't happen in general"."""
    admin = Administrator(cluster)
    away = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    admin.create_topic("t", {0: (away,)})
    cluster.run_until(lambda: leaders(cluster, T) == [away])
    cluster.crash(away)
    cluster.restart(away)
    cluster.run_until(lambda: leaders(cluster, T) == [away], ms_max=500)
    state = state_of(cluster, admin, T)
    assert state is not None
    assert state.leader_epoch == 0, "no election"


def test_f_plus_one_replicas_lose_nothing_when_f_have_died(cluster: ZkCluster) -> None:
    """Seed 004: three replicas in sync outlive two, where a majority would outlive one."""
    told = write_to(cluster, partitions=1)
    cluster.run(1500)
    for _ in range(2):
        (leader,) = leaders(cluster, of("orders"))
        cluster.crash(leader)
        cluster.run_until(lambda: len(leaders(cluster, of("orders"))) == 1)
        cluster.run(2000)
    before = len(told.acknowledged)
    cluster.run(2000)
    assert len(told.acknowledged) > before > 20
    cluster.run_until(lambda: len(told.unread) < 10)


def test_record_is_acknowledged_before_it_is_on_a_disk(cluster: ZkCluster) -> None:
    """Seed 004: "not guaranteed to be persisted to disk", so that a power cut everywhere takes it
    away."""
    admin, client = Administrator(cluster), Producer(cluster)
    admin.create_topic("t", {0: (1, 2, 3)})
    cluster.run_until(lambda: leaders(cluster, T) == [1])
    cluster.run(500)
    answers = client.send(1, T, b"in three memories")
    cluster.run_until(lambda: bool(answers))
    ends = [found.open_log.end_offset for each in (1, 2, 3) if (found := replica(cluster, each, T))]
    assert ends == [1, 1, 1]
    for each in (1, 2, 3):
        cluster.crash(each, power_loss=True)
    for each in (1, 2, 3):
        cluster.restart(each)
    cluster.run_until(lambda: len(leaders(cluster, T)) == 1)
    cluster.run(500)
    (leader,) = leaders(cluster, T)
    led = replica(cluster, leader, T)
    assert led is not None
    assert led.open_log.end_offset == 0
