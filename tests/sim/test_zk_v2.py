"""zk-v2 on an ensemble in memory: the replicas elect, and leaders govern."""

from dataclasses import replace
from itertools import pairwise

import pytest

from jepsen_like.clients.admin_client import deletion, reassignment
from jepsen_like.sim.assemblies.designs.zk_cluster import PATIENCE
from tests.sim.watching import looking
from tests.sim.zookeeper import Administrator, Producer, Scene, T, begin, fetches_of, nothing, of
from wire.errors import ErrorCode
from wire.messages.partitions import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
)
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import ZK_V2
from wire.zk.session import Create, Delete, GetData, SetData
from wire.zk.znodes import (
    PartitionIsr,
    PartitionLeader,
    ReplicaList,
    StateChange,
    StateChangeKind,
    TopicAssignment,
)


@pytest.fixture
def cluster() -> Scene:
    return begin(ZK_V2)


def leader_of(admin: Administrator, which: TopicPartition = T) -> PartitionLeader | None:
    data = admin.data(paths.partition_leader(which.topic, which.partition))
    return None if data is None else PartitionLeader.decode(data)


def isr_of(admin: Administrator, which: TopicPartition = T) -> PartitionIsr:
    data = admin.data(paths.partition_isr(which.topic, which.partition))
    assert data is not None
    return PartitionIsr.decode(data)


def watched(cluster: Scene) -> set[str]:
    """The paths that somebody watches."""
    return {path for server in cluster.ensemble.servers.values() for path, _ in server.watched}


def test_preferred_replica_of_a_new_topic_wins_and_all_that_live_are_in_sync(
    cluster: Scene,
) -> None:
    admin = cluster.create({0: (2, 1, 3), 1: (3, 2)})
    assert leader_of(admin) == PartitionLeader(leader=2, leader_epoch=0)
    assert isr_of(admin) == PartitionIsr(isr=(2, 1, 3), leader_epoch=0)
    assert cluster.leaders(of("t", 1)) == [3]
    assert cluster.replica(1, of("t", 1)) is None, "not assigned"
    assert admin.data(paths.CONTROLLER) is None


def test_death_of_the_leader_elects_an_in_sync_replica_in_the_next_epoch(
    cluster: Scene,
) -> None:
    admin = cluster.create({0: (1, 2, 3)})
    cluster.crash(1)
    cluster.run_until(lambda: cluster.leaders() in ([2], [3]))
    cluster.run(300)
    leader = leader_of(admin)
    assert leader is not None
    assert leader.leader_epoch == 1
    assert isr_of(admin) == PartitionIsr(isr=(1, 2, 3), leader_epoch=1), "nobody has written since"
    follower = cluster.held(5 - leader.leader)
    assert (follower.leader_id, follower.leader_epoch) == (leader.leader, 1)


def test_change_of_leader_does_not_wait_behind_other_notifications(cluster: Scene) -> None:
    """A queue of state changes is obeyed one by one; the leader dies meanwhile."""
    admin = cluster.create({0: (1, 2, 3)})
    useless = StateChange(
        kind=StateChangeKind.START_REPLICA, topic="t", partition=0, leader_epoch=0
    )
    cluster.cut_session(2)
    for _ in range(100):
        prefix = paths.state_queue_prefix(2)
        admin.do(Create(path=prefix, data=useless.encode(), is_sequential=True))
    cluster.heal_session(2)
    cluster.run_until(lambda: len(admin.children(paths.state_queue(2))) < 100)
    cluster.ensemble.expire(cluster.nodes[1].member.session.id)
    cluster.run_until(lambda: 2 in cluster.leaders(), ms_max=300)
    assert len(admin.children(paths.state_queue(2))) > 10, "it is still at it"


def test_others_than_in_sync_replicas_stand_after_the_election_wait_time(
    cluster: Scene,
) -> None:
    admin = cluster.create({0: (1, 2)})
    alone = PartitionIsr(isr=(1,), leader_epoch=0).encode()
    admin.do(SetData(path=paths.partition_isr("t", 0), data=alone))
    cluster.crash(1)
    cluster.run_until(lambda: leader_of(admin) is None)
    missed_ms = cluster.world.now_ms
    cluster.run_until(lambda: cluster.leaders() == [2])
    assert cluster.world.now_ms - missed_ms >= 450, "LeaderElectionWaitTime"
    assert isr_of(admin) == PartitionIsr(isr=(2,), leader_epoch=1)


def test_orderly_stop_gives_leaderships_up_at_once(cluster: Scene) -> None:
    cluster.create({0: (1, 2, 3)})
    cluster.shut_down(1)
    cluster.run_until(lambda: cluster.leaders() in ([2], [3]), ms_max=600)


def test_leadership_goes_back_to_the_preferred_replica_when_it_is_in_sync(
    cluster: Scene,
) -> None:
    cluster.create({0: (1, 2, 3)})
    cluster.crash(1)
    cluster.run_until(lambda: cluster.leaders() in ([2], [3]))
    cluster.run(3000)
    assert cluster.leaders() in ([2], [3]), "a dead one in the ISR is not waited for"
    cluster.restart(1)
    cluster.run_until(lambda: cluster.leaders() == [1])


def test_leaders_give_way_for_one_partition_at_a_time(cluster: Scene) -> None:
    admin = Administrator(cluster)
    every = [of("t", partition) for partition in range(6)]
    admin.create_topic("t", dict.fromkeys(range(6), (1, 2, 3)))
    cluster.run_until(lambda: all(cluster.leaders(each) == [1] for each in every))
    cluster.crash(1)
    cluster.run_until(lambda: all(cluster.leaders(each) == [2] for each in every))
    cluster.restart(1)
    led = [0]
    while led[-1] < len(every):
        cluster.run(PATIENCE.check_interval_ms // 4)
        led.append(sum(cluster.leaders(each) == [1] for each in every))
        assert len(led) < 100
    assert max(later - earlier for earlier, later in pairwise(led)) == 1


def test_follower_that_does_not_keep_in_sync_is_dropped_and_comes_back(
    cluster: Scene,
) -> None:
    told = cluster.write(partitions=1)
    which = of("orders")
    admin = Administrator(cluster)
    (leader,) = cluster.leaders(which)
    slow = next(each for each in (1, 2, 3) if each != leader)
    cluster.network.takes = fetches_of(slow)
    cluster.run_until(lambda: slow not in isr_of(admin, which).isr)
    before = len(told.acknowledged)
    cluster.run(1000)
    assert len(told.acknowledged) > before
    cluster.network.takes = nothing
    cluster.run_until(lambda: slow in isr_of(admin, which).isr)


def test_zombie_leader_cannot_commit_behind_its_successor(cluster: Scene) -> None:
    admin = cluster.create({0: (1, 2, 3)})
    cluster.pause(1)
    cluster.run_until(lambda: len(cluster.leaders()) > 1)
    zombie = cluster.held(1)
    before = zombie.open_log.high_watermark
    held = cluster.nodes[1].by_replicas.held[T]
    assert isr_of(admin).leader_epoch == held.leader_epoch + 1, "its conditional write would fail"
    cluster.resume(1)
    cluster.run_until(lambda: len(cluster.leaders()) == 1)
    assert cluster.leaders() != [1]
    assert zombie.open_log.high_watermark == before


def test_leader_whose_conditional_write_fails_looks_who_leads(cluster: Scene) -> None:
    """The ISR's node has moved on: a person, or a leader that it has not heard of."""
    told = cluster.write(partitions=1)
    which = of("orders")
    admin = Administrator(cluster)
    (leader,) = cluster.leaders(which)
    slow = next(each for each in (1, 2, 3) if each != leader)
    path = paths.partition_isr("orders", 0)
    data = admin.data(path)
    assert data is not None
    admin.do(SetData(path=path, data=data))
    cluster.network.takes = fetches_of(slow)
    cluster.run_until(lambda: any(t.event == "isr-not-written" for _, _, t in cluster.traces))
    cluster.run_until(lambda: slow not in isr_of(admin, which).isr)
    assert told.acknowledged


def test_old_state_changes_are_not_obeyed(cluster: Scene) -> None:
    admin = cluster.create({0: (1, 2, 3)})
    cluster.shut_down(1)
    cluster.run_until(lambda: cluster.leaders() in ([2], [3]))
    old = StateChange(
        kind=StateChangeKind.CLOSE_REPLICA, topic="t", partition=0, leader_epoch=0
    ).encode()
    admin.do(Create(path=paths.state_queue_prefix(3), data=old, is_sequential=True))
    cluster.run_until(lambda: admin.children(paths.state_queue(3)) == ())
    assert cluster.replica(3) is not None


# --- reassignment -----------------------------------------------------------------------------


def replicas_of(admin: Administrator) -> tuple[int, ...]:
    data = admin.data(paths.partition_replicas("t", 0))
    assert data is not None
    return ReplicaList.decode(data).replicas


def test_leader_has_new_replicas_start_and_old_ones_close(cluster: Scene) -> None:
    admin = cluster.create({0: (1, 2)})
    admin.ask_under(paths.V2_PARTITIONS_REASSIGNED, 0, (1, 3))
    cluster.run_until(lambda: replicas_of(admin) == (1, 3))
    cluster.run(500)
    assert cluster.leaders() == [1]
    assert isr_of(admin) == PartitionIsr(isr=(1, 3), leader_epoch=0), "no election"
    assert cluster.replica(2) is None
    assert not cluster.has_log(2)
    assert admin.children(paths.V2_PARTITIONS_REASSIGNED) == ()
    assert admin.children(paths.state_queue(2)) == ()


def under_way(cluster: Scene, client: Producer) -> list[OngoingPartitionReassignment]:
    answer = client.told(2, ListPartitionReassignmentsRequest())
    assert isinstance(answer, ListPartitionReassignmentsResponse)
    return [each for topic in answer.topics for each in topic.partitions]


def test_what_is_under_way_is_listed_and_goes_back_when_a_client_cancels_it(
    cluster: Scene,
) -> None:
    admin, client = cluster.create({0: (1, 2)}), Producer(cluster)
    cluster.network.takes = lambda message: message.source == 3 and message.is_request
    admin.ask_under(paths.V2_PARTITIONS_REASSIGNED, 0, (1, 3))
    cluster.run(500)
    (listed,) = under_way(cluster, client)
    assert (listed.adding_replicas, listed.removing_replicas) == ((3,), (2,))
    client.ask(2, reassignment("t-0", None))
    cluster.run_until(lambda: admin.children(paths.V2_PARTITIONS_REASSIGNED) == ())
    cluster.network.takes = nothing
    cluster.run(1000)
    assert (replicas_of(admin), under_way(cluster, client)) == ((1, 2), [])
    assert cluster.leaders() == [1]


@pytest.mark.parametrize("is_away", [False, True], ids=["there", "away"])
@pytest.mark.parametrize(
    "then", [(1, 2), (2, 1), ()], ids=["cancelled", "redirected", "to be deleted"]
)
def test_broker_that_was_to_have_a_replica_for_a_while_closes_it(
    cluster: Scene, then: tuple[int, ...], is_away: bool
) -> None:
    admin = cluster.create({0: (1, 2)})
    cluster.network.takes = lambda message: message.source == 3 and message.is_request
    admin.ask_under(paths.V2_PARTITIONS_REASSIGNED, 0, (1, 3))
    cluster.run_until(lambda: cluster.has_log(3))
    if is_away:
        cluster.crash(3)
        cluster.run(2000)
    node = paths.partition_under(paths.V2_PARTITIONS_REASSIGNED, "t", 0)
    admin.do(SetData(path=node, data=ReplicaList(replicas=then).encode()))
    cluster.run_until(lambda: admin.children(paths.V2_PARTITIONS_REASSIGNED) == ())
    if is_away:
        cluster.restart(3)
    cluster.run_until(lambda: not cluster.has_log(3))
    cluster.run_until(lambda: len(cluster.leaders()) == bool(then))


def test_broker_that_comes_back_before_the_partition_has_moved_from_it_goes_with_the_rest(
    cluster: Scene,
) -> None:
    """It obeys the close-replica, finds itself assigned, and begins anew."""
    admin = cluster.create({0: (1, 2, 3)})
    cluster.crash(3)
    admin.ask_under(paths.V2_PARTITIONS_REASSIGNED, 0, (1, 2))
    cluster.run_until(lambda: admin.children(paths.state_queue(3)) != ())
    cluster.restart(3)
    cluster.run_until(lambda: admin.children(paths.state_queue(3)) == ())
    cluster.run_until(lambda: cluster.has_log(3))
    assert replicas_of(admin) == (1, 2, 3)
    cluster.run_until(lambda: replicas_of(admin) == (1, 2))
    cluster.run_until(lambda: not cluster.has_log(3))
    assert isr_of(admin).isr == (1, 2)


def test_move_that_is_withdrawn_leaves_the_replicas_as_they_were(cluster: Scene) -> None:
    admin = cluster.create({0: (1, 2)})
    cluster.network.takes = lambda message: message.source == 3 and message.is_request
    admin.ask_under(paths.V2_PARTITIONS_REASSIGNED, 0, (3, 1))
    cluster.run_until(lambda: cluster.has_log(3))
    admin.do(Delete(path=paths.partition_under(paths.V2_PARTITIONS_REASSIGNED, "t", 0)))
    cluster.run_until(lambda: not cluster.has_log(3))
    assert (replicas_of(admin), isr_of(admin).isr) == ((1, 2), (1, 2))
    assert cluster.leaders() == [1]


def test_leader_that_shall_go_closes_itself_and_triggers_an_election(cluster: Scene) -> None:
    admin = cluster.create({0: (1, 2)})
    admin.ask_under(paths.V2_PARTITIONS_REASSIGNED, 0, (2, 3))
    cluster.run_until(lambda: cluster.leaders() == [2])
    cluster.run(500)
    assert replicas_of(admin) == (2, 3)
    assert isr_of(admin) == PartitionIsr(isr=(2, 3), leader_epoch=1)
    assert cluster.replica(1) is None
    assert not cluster.has_log(1)


def test_old_and_new_replicas_are_in_sync_before_the_new_ones_are_assigned(
    cluster: Scene,
) -> None:
    """need (RAR + ISR) in case we fail right after here"""
    admin = cluster.create({0: (1, 2)})
    seen: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def look(_host: object, _effects: object) -> None:
        tree = cluster.ensemble.tree
        nodes = [
            tree.read(GetData(path=path("t", 0)))
            for path in (paths.partition_isr, paths.partition_replicas)
        ]
        isr, replicas = (getattr(each, "data", b"") for each in nodes)
        both = PartitionIsr.decode(isr).isr, ReplicaList.decode(replicas).replicas
        if not seen or seen[-1] != both:
            seen.append(both)

    cluster.world.observe(looking(settled=look))
    admin.ask_under(paths.V2_PARTITIONS_REASSIGNED, 0, (2, 3))
    cluster.run_until(lambda: cluster.leaders() == [2])
    assert seen == [
        ((1, 2), (1, 2)),
        ((1, 2, 3), (1, 2)),
        ((1, 2, 3), (2, 3)),
        ((2, 3), (2, 3)),
    ]


def test_next_leader_goes_on_with_a_reassignment_that_it_finds(cluster: Scene) -> None:
    admin = cluster.create({0: (1, 2)})
    cluster.crash(3)
    cluster.run(1500)
    admin.ask_under(paths.V2_PARTITIONS_REASSIGNED, 0, (2, 3))
    cluster.run(500)
    cluster.crash(1)
    cluster.run_until(lambda: cluster.leaders() == [2])
    cluster.restart(1)
    cluster.restart(3)
    cluster.run_until(lambda: replicas_of(admin) == (2, 3))
    cluster.run_until(lambda: cluster.replica(1) is None)


# --- removal ----------------------------------------------------------------------------------


def test_partition_moved_to_nobody_is_deleted_everywhere(cluster: Scene) -> None:
    admin = cluster.create({0: (1, 2, 3), 1: (2, 3)})
    admin.ask_under(paths.V2_PARTITIONS_REASSIGNED, 0, ())
    admin.ask_under(paths.V2_PARTITIONS_REASSIGNED, 1, ())
    cluster.run_until(lambda: admin.children(paths.TOPICS) == ())
    cluster.run(500)
    assert admin.children(paths.V2_PARTITIONS_REASSIGNED) == ()
    for node_id in (1, 2, 3):
        assert cluster.replica(node_id) is None
        assert cluster.hosts[node_id].disk.logs.keys() & {"t-0", "t-1"} == set()


def test_broker_that_was_away_deletes_what_was_deleted_meanwhile(cluster: Scene) -> None:
    admin = cluster.create({0: (1, 2, 3)})
    cluster.crash(3)
    cluster.run(2000)
    admin.ask_under(paths.V2_PARTITIONS_REASSIGNED, 0, ())
    cluster.run_until(lambda: admin.children(paths.TOPICS) == ())
    assert len(admin.children(paths.state_queue(3))) == 1
    admin.create_topic("t", {0: (1, 2)})
    cluster.run(1000)
    cluster.restart(3)
    cluster.run_until(lambda: admin.children(paths.state_queue(3)) == ())
    cluster.run(500)
    assert not cluster.has_log(3)
    assert cluster.leaders() == [1]


def test_partitions_are_added_by_writing_the_node_of_the_topic(cluster: Scene) -> None:
    admin = cluster.create({0: (1, 2)})
    more = TopicAssignment(partitions={0: (1, 2), 1: (3, 1)}).encode()
    admin.do(SetData(path=paths.topic("t"), data=more))
    cluster.settle(of("t", 1))
    assert cluster.leaders(of("t", 1)) == [3]


def test_broker_watches_one_leader_a_partition(cluster: Scene) -> None:
    """3,000 partitions, 3,000 watches: the page counts each path once."""
    admin = Administrator(cluster)
    before = watched(cluster)
    admin.create_topic("t", dict.fromkeys(range(10), (1, 2, 3)))
    cluster.settle(of("t", 9))
    cluster.run(1000)
    new = watched(cluster) - before
    assert sorted(new) == [
        paths.topic("t"),
        *(paths.partition_leader("t", partition) for partition in range(10)),
    ]


# --- clients, at any broker -------------------------------------------------------------------


def test_any_broker_moves_a_partition_for_a_client(cluster: Scene) -> None:
    admin, client = cluster.create({0: (1, 2)}), Producer(cluster)
    answers = client.ask(2, reassignment("t-0", (3, 1)))
    cluster.run_until(lambda: bool(answers))
    cluster.run_until(lambda: cluster.leaders() == [3])
    cluster.run(500)
    assert replicas_of(admin) == (3, 1)
    assert cluster.replica(2) is None


def elected(
    cluster: Scene, client: Producer, *, unclean: bool = False
) -> tuple[ErrorCode, list[ErrorCode]]:
    live = cluster.up[0].broker.config.node_id
    answer = client.told(live, ElectLeadersRequest(election_type=int(unclean)))
    assert isinstance(answer, ElectLeadersResponse)
    of_each = [
        each.error_code
        for topic in answer.replica_election_results
        for each in topic.partition_result
    ]
    return answer.error_code, of_each


def test_preferred_leaders_that_a_client_asks_for_are_those_that_leaders_give_way_to() -> None:
    patience = replace(PATIENCE, check_interval_ms=2000)
    cluster = begin(ZK_V2, of_replicas=patience)
    _admin, client = cluster.create({0: (1, 2, 3)}), Producer(cluster)
    cluster.crash(1)
    cluster.run_until(lambda: cluster.leaders() in ([2], [3]))
    gone = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert elected(cluster, client) == (ErrorCode.NONE, [gone])
    cluster.restart(1)
    cluster.run_until(lambda: cluster.nodes[1].broker.serves_clients)
    assert elected(cluster, client) == (ErrorCode.NONE, [ErrorCode.NONE])
    cluster.run_until(lambda: cluster.leaders() == [1], ms_max=5000)
    cluster.run(100)
    assert elected(cluster, client) == (ErrorCode.NONE, []), "nobody else needs one"
    assert elected(cluster, client, unclean=True) == (ErrorCode.INVALID_REQUEST, [])


def test_any_broker_deletes_a_topic_for_a_client(cluster: Scene) -> None:
    admin, client = cluster.create({0: (1, 2), 1: (2, 3)}), Producer(cluster)
    cluster.settle(of("t", 1))
    answers = client.ask(3, deletion("t", 1000))
    cluster.run_until(lambda: admin.children(paths.TOPICS) == ())
    assert answers
    cluster.run(500)
    assert admin.children(paths.V2_PARTITIONS_REASSIGNED) == ()
    assert cluster.replica(2) is None
