"""zk-v2 on an ensemble in memory: the replicas elect, and leaders govern."""

import pytest

from jepsen_like.sim.zk_cluster import ZkCluster
from tests.sim.zookeeper import Administrator, begin, leaders, of, replica, write_to
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import ZK_V2
from wire.zk.replica_znodes import PartitionIsr, PartitionLeader

T = of("t")


@pytest.fixture
def cluster() -> ZkCluster:
    return begin(ZK_V2)


def settled(cluster: ZkCluster, which: TopicPartition = T) -> None:
    cluster.run_until(lambda: len(leaders(cluster, which)) == 1)
    cluster.run(500)


def leader_of(admin: Administrator, which: TopicPartition = T) -> PartitionLeader | None:
    data = admin.data(paths.partition_leader(which.topic, which.partition))
    return None if data is None else PartitionLeader.decode(data)


def isr_of(admin: Administrator, which: TopicPartition = T) -> PartitionIsr:
    data = admin.data(paths.partition_isr(which.topic, which.partition))
    assert data is not None
    return PartitionIsr.decode(data)


def test_preferred_replica_of_a_new_topic_wins_and_all_that_live_are_in_sync(
    cluster: ZkCluster,
) -> None:
    admin = Administrator(cluster)
    admin.create_topic("t", {0: (2, 1, 3), 1: (3, 2)})
    settled(cluster)
    settled(cluster, of("t", 1))
    assert leader_of(admin) == PartitionLeader(leader=2, leader_epoch=0)
    assert isr_of(admin) == PartitionIsr(isr=(2, 1, 3), leader_epoch=0)
    assert leaders(cluster, of("t", 1)) == [3]
    assert replica(cluster, 1, of("t", 1)) is None, "not assigned"
    assert admin.data(paths.CONTROLLER) is None


def test_clients_lose_nothing_while_leaders_die(cluster: ZkCluster) -> None:
    told = write_to(cluster)
    cluster.run(1500)
    for dead in (1, 2):
        cluster.crash(dead)
        cluster.run(4000)
        cluster.restart(dead)
        cluster.run(3000)
    assert len(told.acknowledged) > 300
    cluster.run_until(lambda: len(told.unread) < 10)
