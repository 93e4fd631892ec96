"""zk-v1 on an ensemble in memory: the simplest scheme, with its three problems counted."""

from dataclasses import dataclass

import pytest

from tests.sim.zookeeper import Administrator, Producer, Scene, T, begin, of
from wire.errors import ErrorCode
from wire.zk import paths
from wire.zk.designs import ZK_V1, ZK_V2, Design
from wire.zk.session import Create, Delete
from wire.zk.znodes import NO_EPOCH, PartitionIsr, PartitionLeader


@pytest.fixture
def cluster() -> Scene:
    return begin(ZK_V1)


def test_first_to_create_the_node_leads_and_there_is_no_epoch(cluster: Scene) -> None:
    admin = cluster.create({0: (2, 1, 3)})
    (leader,) = cluster.leaders()
    data = admin.data(paths.partition_leader("t", 0))
    assert data is not None
    assert PartitionLeader.decode(data) == PartitionLeader(leader=leader, leader_epoch=NO_EPOCH)
    isr = admin.data(paths.partition_isr("t", 0))
    assert isr is not None
    assert set(PartitionIsr.decode(isr).isr) == {1, 2, 3}
    for node_id in {1, 2, 3} - {leader}:
        follower = cluster.held(node_id)
        assert follower.leader_id == leader


@pytest.mark.parametrize("leader_goes", [True, False])
def test_replicas_find_out_themselves_that_a_partition_moves(
    cluster: Scene, leader_goes: bool
) -> None:
    admin = cluster.create({0: (1, 2)})
    (leader,) = cluster.leaders()
    gone = leader if leader_goes else 3 - leader
    stays = 3 - gone
    admin.ask_under(paths.V2_PARTITIONS_REASSIGNED, 0, (stays, 3))
    cluster.run_until(lambda: admin.children(paths.V2_PARTITIONS_REASSIGNED) == ())
    cluster.run_until(lambda: cluster.replica(gone) is None)
    cluster.settle()
    assert cluster.leaders() in ([stays], [3])
    assert not cluster.has_log(gone)
    assert admin.children(paths.STATE_QUEUES) == (), "there are none"


def test_deleted_partition_goes_from_every_broker_that_lives(cluster: Scene) -> None:
    admin = cluster.create({0: (1, 2, 3)})
    admin.ask_under(paths.V2_PARTITIONS_REASSIGNED, 0, ())
    cluster.run_until(lambda: admin.children(paths.TOPICS) == ())
    cluster.run_until(lambda: all(cluster.replica(each) is None for each in (1, 2, 3)))
    assert all(not cluster.has_log(each) for each in (1, 2, 3))


# --- the three problems -----------------------------------------------------------------------


@dataclass
class Failover:
    """What the death of broker 1 has cost, for each partition that it led."""

    notified: float
    stood: float
    requests: float  # that ZooKeeper got, and events that it sent


def failover(design: Design, partitions: int = 10) -> Failover:
    cluster = begin(design)
    admin = Administrator(cluster)
    admin.create_topic("t", dict.fromkeys(range(partitions), (1, 2, 3)))
    for partition in range(partitions):
        cluster.settle(of("t", partition))
    cluster.run(1000)
    led = [each for each in range(partitions) if cluster.leaders(of("t", each)) == [1]]
    assert led
    before = {node_id: node.by_replicas.counts.copy() for node_id, node in cluster.nodes.items()}
    requests = sum(cluster.ensemble.traffic.values())
    cluster.crash(1)
    cluster.run_until(
        lambda: all(cluster.leaders(of("t", each)) in ([2], [3]) for each in led), ms_max=60_000
    )
    cluster.run(200)

    def counted(what: str) -> int:
        return sum(cluster.nodes[n].by_replicas.counts[what] - before[n][what] for n in (2, 3))

    assert counted("won") == len(led)
    return Failover(
        notified=counted("notified") / len(led),
        stood=counted("stood") / len(led),
        requests=(sum(cluster.ensemble.traffic.values()) - requests) / len(led),
    )


def test_herd_effect_every_replica_stands_for_every_partition_of_a_dead_broker() -> None:
    rush, mended = failover(ZK_V1), failover(ZK_V2)
    assert rush.stood == 2, "both that are left, for each partition"
    assert mended.stood == 1, "one after the other, and one is enough"
    assert rush.notified >= 2 * mended.notified


def test_load_of_zookeeper_is_greater_for_every_replica_watches_every_node() -> None:
    """3,000 partitions: 15,000 watches against 3,000, if a path that is watched counts once."""
    watched = {}
    for design in (ZK_V1, ZK_V2):
        cluster = begin(design)
        admin = Administrator(cluster)
        admin.create_topic("t", dict.fromkeys(range(10), (1, 2, 3)))
        cluster.settle(of("t", 9))
        cluster.run(1000)
        watched[design] = {
            place
            for server in cluster.ensemble.servers.values()
            for place in server.watched
            if paths.partition_of(place[0]) is not None
        }
    assert len(watched[ZK_V1]) == 5 * 10
    assert len(watched[ZK_V2]) == 10
    assert failover(ZK_V1).requests > 1.5 * failover(ZK_V2).requests


@pytest.mark.parametrize("design", [ZK_V1, ZK_V2], ids=["zk-v1 is red", "zk-v2 is green"])
def test_split_brain_two_leaders_acknowledge_different_records_at_one_offset(
    design: Design,
) -> None:
    """A2 of the museum. A leader does not hear of the end of its session:

    1. it has no way to ZooKeeper, its session ends, and another replica is elected;
    2. a client that has stayed with it writes; nobody fetches, and it wants an ISR of itself alone;
    3. another client writes to the new leader, and is acknowledged;
    4. it finds ZooKeeper again, and does what it wanted, before it hears what has become of it.
    """
    cluster = begin(design)
    admin, patient, other = Administrator(cluster), Producer(cluster), Producer(cluster)
    admin.create_topic("t", {0: (1, 2, 3)})
    cluster.settle()
    (old,) = cluster.leaders()
    cluster.cut_session(old)
    cluster.run_until(lambda: len(cluster.leaders()) == 2)
    (new,) = (each for each in cluster.leaders() if each != old)
    cluster.run(200)
    of_old = patient.send(old, T, b"old")
    cluster.run(2500)
    of_new = other.send(new, T, b"new")
    cluster.run(100)
    assert of_old == [], "it cannot commit alone, before it has written so"
    cluster.heal_session(old)
    cluster.run_until(lambda: bool(of_old) and bool(of_new))
    told_old, told_new = (getattr(answers[0], "error_code", None) for answers in (of_old, of_new))
    assert told_new is ErrorCode.NONE
    if design.has_leader_epochs:
        assert told_old is ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        assert told_old is ErrorCode.NONE
        assert getattr(of_old[0], "base_offset", -1) == getattr(of_new[0], "base_offset", -1)
    assert cluster.nodes[old].by_replicas.counts["deposed"] == 1


# --- what random runs have found --------------------------------------------------------------


def test_isr_that_a_former_leader_wrote_over_is_written_again(cluster: Scene) -> None:
    """Found by seed 20398: without epochs nothing keeps a former leader from that write."""
    admin, patient = Administrator(cluster), Producer(cluster)
    admin.create_topic("t", {0: (1, 2, 3)})
    cluster.settle()
    (old,) = cluster.leaders()
    cluster.cut_session(old)
    cluster.run_until(lambda: len(cluster.leaders()) == 2)
    cluster.run(200)
    answers = patient.send(old, T, b"old")  # it wants to be alone in the ISR
    cluster.run(2500)
    cluster.heal_session(old)
    cluster.run_until(lambda: bool(answers))
    cluster.crash(old)  # so that nothing else changes the ISR again
    assert in_sync(admin) == {old}
    cluster.run_until(lambda: in_sync(admin) == {1, 2, 3})


def test_leader_that_registers_after_its_election_is_followed(cluster: Scene) -> None:
    """Found by seed 20380: followers looked for it once, when they heard that it leads."""
    admin = Administrator(cluster)
    cluster.run(1000)
    node = paths.broker(1)
    registered = admin.data(node)
    assert registered is not None
    admin.do(Delete(path=node))
    for other in (2, 3):
        cluster.crash(other)
        cluster.restart(other)  # and reads no registration of broker 1
    cluster.run(1000)
    admin.create_topic("t", dict.fromkeys(range(10), (1, 2, 3)))
    cluster.run(1000)
    led = next(each for each in range(10) if cluster.leaders(of("t", each)) == [1])
    Producer(cluster).send(1, of("t", led), b"a record")
    admin.do(Create(path=node, data=registered))
    cluster.run_until(lambda: all(has_record(cluster, each, led) for each in (2, 3)))


def has_record(cluster: Scene, node_id: int, partition: int) -> bool:
    found = cluster.replica(node_id, of("t", partition))
    return found is not None and found.log is not None and found.log.end_offset == 1


def in_sync(admin: Administrator) -> set[int]:
    data = admin.data(paths.partition_isr("t", 0))
    return set() if data is None else {*PartitionIsr.decode(data).isr}
