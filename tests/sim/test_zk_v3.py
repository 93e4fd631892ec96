"""zk-v3 on an ensemble in memory: the procedures of its document, seen in znodes and replicas."""

from collections import Counter

import pytest

from broker.partition.partition import FollowerOf, LeaderOf
from jepsen_like.sim.assemblies.designs.zk_cluster import ZkCluster
from jepsen_like.sim.world.network import Message
from quorum.core.effects import Effect
from quorum.node.driver import describe_trace
from quorum.zookeeper.zk_effects import ZkRequest
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
from wire.errors import ErrorCode
from wire.message import replace
from wire.zk import paths
from wire.zk.control_rpc import LeaderAndIsrRequest
from wire.zk.designs import ZK_REDESIGN, ZK_V2, ZK_V3, Design
from wire.zk.session import Create, Delete, SetData
from wire.zk.znodes import PartitionState, ReplicaList, TopicAssignment

T = of("t")
EMPTY = PartitionState(leader=-1, leader_epoch=0, isr=(), controller_epoch=0)


@pytest.fixture
def cluster() -> ZkCluster:
    return begin(ZK_V3)


def settled(cluster: ZkCluster, which: object = T) -> None:
    """Someone leads, and all that live are in sync."""
    cluster.run_until(lambda: len(leaders(cluster, which)) == 1)  # type: ignore[arg-type]
    cluster.run(500)


def test_first_broker_to_create_the_node_is_the_controller_and_counts_the_epoch(
    cluster: ZkCluster,
) -> None:
    admin = Administrator(cluster)
    assert admin.children(paths.BROKER_IDS) == ("1", "2", "3")
    owner = admin.data(paths.CONTROLLER)
    assert owner is not None
    assert f'"brokerid":{cluster.active_controller}' in owner.decode()
    assert admin.data(paths.CONTROLLER_EPOCH) == b"1"


def test_topic_whose_node_is_created_gets_leaders_and_all_live_replicas_in_sync(
    cluster: ZkCluster,
) -> None:
    admin = Administrator(cluster)
    admin.create_topic("t", {0: (2, 1, 3), 1: (3, 2)})
    settled(cluster)
    state = state_of(cluster, admin, T)
    assert state is not None
    assert (state.leader, state.isr, state.leader_epoch) == (2, (2, 1, 3), 0)
    assert leaders(cluster, of("t", 1)) == [3]
    assert replica(cluster, 1, of("t", 1)) is None, "not assigned"
    follower = replica(cluster, 1, T)
    assert follower is not None
    assert isinstance(follower.role, FollowerOf)


def test_broker_failure_elects_from_the_isr_and_shrinks_it_in_the_same_write(
    cluster: ZkCluster,
) -> None:
    admin = Administrator(cluster)
    controller = cluster.active_controller
    dead = next(each for each in (1, 2, 3) if each != controller)
    rest = tuple(each for each in (1, 2, 3) if each != dead)
    admin.create_topic("t", {0: (dead, *rest)})
    settled(cluster)
    cluster.crash(dead)
    cluster.run_until(lambda: leaders(cluster, T) == [rest[0]])
    state = state_of(cluster, admin, T)
    assert state is not None
    assert (state.leader, state.isr, state.leader_epoch) == (rest[0], rest, 1)


class Calls(ZkCluster):
    """Counts how many writes of a controller are in flight at once."""

    writes = 0

    def settled(self, host: object, effects: object) -> None:
        mine = [each for each in effects if is_state_write(each)]  # type: ignore[attr-defined]
        self.writes += len(mine)
        assert len(mine) <= 1, "one synchronous write a partition"


def is_state_write(effect: Effect) -> bool:
    return (
        isinstance(effect, ZkRequest)
        and effect.token.owner == "controller"
        and isinstance(effect.operation, SetData)
        and effect.operation.path.endswith("leaderAndISR")
    )


def test_failover_costs_one_synchronous_write_for_each_affected_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.sim.zookeeper.ZkCluster", Calls)
    cluster = begin(ZK_V3)
    assert isinstance(cluster, Calls)
    admin = Administrator(cluster)
    dead = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    rest = tuple(each for each in (1, 2, 3) if each != dead)
    admin.create_topic("t", dict.fromkeys(range(10), (dead, *rest)))
    settled(cluster, of("t", 9))
    before = cluster.writes
    cluster.crash(dead)
    cluster.run_until(lambda: leaders(cluster, of("t", 9)) == [rest[0]])
    cluster.run(200)
    assert cluster.writes - before == 10


def test_partition_without_a_live_replica_has_no_leader_until_one_comes_back(
    cluster: ZkCluster,
) -> None:
    admin = Administrator(cluster)
    dead = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    admin.create_topic("t", {0: (dead,)})
    settled(cluster)
    cluster.crash(dead)
    cluster.run(3000)
    state = state_of(cluster, admin, T)
    assert state is not None
    assert (state.leader, state.isr) == (-1, (dead,))
    cluster.restart(dead)
    settled(cluster)
    assert leaders(cluster, T) == [dead]


def test_without_a_live_member_of_the_isr_any_live_replica_leads(cluster: ZkCluster) -> None:
    """A.3.2: "potential data loss in this case"."""
    admin = Administrator(cluster)
    controller = cluster.active_controller
    assert controller is not None
    dead = [each for each in (1, 2, 3) if each != controller]
    admin.create_topic("t", {0: (dead[0], controller)})
    settled(cluster)
    # The other replica has left the ISR.
    alone = PartitionState(leader=dead[0], leader_epoch=0, isr=(dead[0],), controller_epoch=1)
    admin.do(SetData(path="/brokers/topics/t/0/leaderAndISR", data=alone.encode()))
    cluster.crash(dead[0])
    cluster.run_until(lambda: leaders(cluster, T) == [controller])
    elected = state_of(cluster, admin, T)
    assert elected is not None
    assert (elected.leader, elected.isr) == (controller, (controller,))


def test_new_controller_tells_all_brokers_all_that_is_theirs(cluster: ZkCluster) -> None:
    admin = Administrator(cluster)
    admin.create_topic("t", {0: (1, 2, 3)})
    settled(cluster)
    old = cluster.active_controller
    assert old is not None
    told: dict[int, set[str]] = {}

    def note(message: Message) -> bool:
        if isinstance(message.body, LeaderAndIsrRequest) and message.body.is_init:
            told[message.target] = {each.topic for each in message.body.partitions}
        return False

    cluster.network.takes = note
    cluster.crash(old)
    cluster.run_until(lambda: cluster.active_controller not in (None, old))
    cluster.run(500)
    assert admin.data(paths.CONTROLLER_EPOCH) == b"2"
    assert told == {each: {"t"} for each in (1, 2, 3) if each != old}
    assert len(leaders(cluster, T)) == 1


def test_controllers_node_deleted_by_an_administrator_is_run_for_again(
    cluster: ZkCluster,
) -> None:
    admin = Administrator(cluster)
    admin.do(Delete(path=paths.CONTROLLER))
    cluster.run(300)
    assert cluster.active_controller is not None
    assert admin.data(paths.CONTROLLER_EPOCH) == b"2"
    assert sum(node.controller.is_active for node in cluster.up) == 1


def test_reassignment_ends_when_the_isr_is_the_old_replicas_and_the_new_ones(
    cluster: ZkCluster,
) -> None:
    admin = Administrator(cluster)
    admin.create_topic("t", {0: (1, 2)})
    settled(cluster)
    node = paths.partition_under(paths.PARTITIONS_REASSIGNED, "t", 0)
    admin.do(Create(path=paths.parent(node)))
    admin.do(Create(path=node, data=ReplicaList(replicas=(2, 3)).encode()))
    cluster.run_until(lambda: leaders(cluster, T) == [2])
    cluster.run(500)
    state = state_of(cluster, admin, T)
    assert state is not None
    assert (state.leader, state.isr) == (2, (2, 3))
    topic = admin.data(paths.topic("t"))
    assert topic is not None
    assert TopicAssignment.decode(topic).partitions == {0: (2, 3)}
    assert admin.children(paths.PARTITIONS_REASSIGNED) == ()
    assert replica(cluster, 1, T) is None, "StopReplica took the log of the old one"
    assert "t-0" not in cluster.hosts[1].disk.logs


def test_agent_wakes_when_it_is_told_and_from_time_to_time() -> None:
    """F: the new replica is in sync at once, and nobody tells the agent."""
    cluster = begin(ZK_V3, agent_wake_ms=5000)
    admin = Administrator(cluster)
    admin.create_topic("t", {0: (1, 2)})
    settled(cluster)
    node = paths.partition_under(paths.PARTITIONS_REASSIGNED, "t", 0)
    admin.do(Create(path=paths.parent(node)))
    admin.do(Create(path=node, data=ReplicaList(replicas=(2, 3)).encode()))
    told_ms = cluster.world.now_ms
    cluster.run_until(lambda: 3 in (state_of(cluster, admin, T) or EMPTY).isr, ms_max=1000)
    cluster.run(3000)
    assert leaders(cluster, T) == [1], "in sync, and not seen yet"
    cluster.run_until(lambda: leaders(cluster, T) == [2])
    assert 4900 <= cluster.world.now_ms - told_ms <= 5500


def test_partitions_are_added_and_removed_by_their_paths(cluster: ZkCluster) -> None:
    admin = Administrator(cluster)
    admin.create_topic("t", {0: (1, 2)})
    settled(cluster)
    added = paths.partition_under(paths.PARTITIONS_ADD, "t", 1)
    admin.do(Create(path=paths.parent(added)))
    admin.do(Create(path=added, data=ReplicaList(replicas=(3, 1)).encode()))
    settled(cluster, of("t", 1))
    assert leaders(cluster, of("t", 1)) == [3]
    topic = admin.data(paths.topic("t"))
    assert topic is not None
    assert TopicAssignment.decode(topic).partitions == {0: (1, 2), 1: (3, 1)}
    removed = paths.partition_under(paths.PARTITIONS_REMOVE, "t", 1)
    admin.do(Create(path=paths.parent(removed)))
    admin.do(Create(path=removed))
    cluster.run_until(lambda: replica(cluster, 3, of("t", 1)) is None)
    cluster.run(300)
    topic = admin.data(paths.topic("t"))
    assert topic is not None
    assert TopicAssignment.decode(topic).partitions == {0: (1, 2)}


def test_deleted_topic_is_stopped_on_every_broker(cluster: ZkCluster) -> None:
    admin = Administrator(cluster)
    admin.create_topic("t", {0: (1, 2, 3)})
    settled(cluster)
    for path in ("/brokers/topics/t/0/leaderAndISR", "/brokers/topics/t/0", "/brokers/topics/t"):
        admin.do(Delete(path=path))
    cluster.run_until(lambda: all(replica(cluster, each, T) is None for each in (1, 2, 3)))
    assert all("t-0" not in cluster.hosts[each].disk.logs for each in (1, 2, 3))


def test_broker_that_is_in_sync_and_not_assigned_has_no_replica_once_it_starts(
    cluster: ZkCluster,
) -> None:
    """E.4, of one that its leader has taken back since nobody has told it of the move."""
    admin = Administrator(cluster)
    away = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    rest = tuple(each for each in (1, 2, 3) if each != away)
    admin.create_topic("t", {0: (*rest, away)})
    settled(cluster)
    cluster.crash(away)
    cluster.run_until(lambda: (state_of(cluster, admin, T) or EMPTY).isr == rest)
    admin.do(SetData(path=paths.topic("t"), data=TopicAssignment(partitions={0: rest}).encode()))
    state = state_of(cluster, admin, T)
    assert state is not None
    data = replace(state, isr=(*rest, away)).encode()
    admin.do(SetData(path=paths.partition_leader_and_isr("t", 0), data=data))
    cluster.restart(away)
    cluster.run_until(lambda: "t-0" not in cluster.hosts[away].disk.logs)


def test_first_command_to_a_broker_that_joins_names_all_that_it_has(cluster: ZkCluster) -> None:
    """So it drops what has moved from it while it read, registered, and was not known to live."""
    admin = Administrator(cluster)
    away = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    admin.create_topic("t", {0: (1, 2, 3)})
    settled(cluster)
    cluster.crash(away)
    cluster.run(3000)
    told: list[tuple[str, ...]] = []

    def note(message: Message) -> bool:
        body = message.body
        if isinstance(body, LeaderAndIsrRequest) and body.is_init and message.target == away:
            told.append(tuple(each.topic for each in body.partitions))
        return False

    cluster.network.takes = note
    cluster.restart(away)
    cluster.run_until(lambda: bool(told))
    assert told == [("t",)]


def test_broker_that_was_away_reads_what_it_holds_and_deletes_the_rest(
    cluster: ZkCluster,
) -> None:
    """E: commands that it missed are made up for by what ZooKeeper says."""
    admin = Administrator(cluster)
    away = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    admin.create_topic("t", {0: (1, 2, 3)})
    admin.create_topic("gone", {0: (1, 2, 3)})
    settled(cluster)
    settled(cluster, of("gone"))
    cluster.crash(away)
    cluster.run(3000)
    for path in (
        "/brokers/topics/gone/0/leaderAndISR",
        "/brokers/topics/gone/0",
        "/brokers/topics/gone",
    ):
        admin.do(Delete(path=path))
    cluster.run(500)
    cluster.restart(away)
    cluster.run_until(lambda: replica(cluster, away, T) is not None)
    cluster.run(1000)
    assert replica(cluster, away, of("gone")) is None
    state = state_of(cluster, admin, T)
    assert state is not None
    assert sorted(state.isr) == [1, 2, 3], "it has caught up, and its leader has written so"


def test_controlled_shutdown_moves_leaderships_and_shrinks_the_isr_first(
    cluster: ZkCluster,
) -> None:
    admin = Administrator(cluster)
    leaving = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    rest = tuple(each for each in (1, 2, 3) if each != leaving)
    admin.create_topic("t", {0: (leaving, *rest)})
    settled(cluster)
    cluster.shut_down(leaving)

    def has_moved() -> bool:
        """It may fetch from its successor, and be in sync again, before it is gone."""
        state = state_of(cluster, admin, T) or EMPTY
        return (state.leader, state.isr) == (rest[0], rest)

    cluster.run_until(has_moved, ms_max=500)
    cluster.run_until(lambda: not cluster.hosts[leaving].is_up)


@pytest.mark.parametrize("design", [ZK_V3, ZK_REDESIGN], ids=lambda each: each.name)
def test_controlled_shutdown_without_another_replica_in_sync_ends_and_names_what_is_left(
    design: Design,
) -> None:
    cluster = begin(design)
    admin = Administrator(cluster)
    leaving = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    admin.create_topic("t", {0: (leaving,)})
    settled(cluster)
    cluster.shut_down(leaving)
    cluster.run_until(lambda: not cluster.hosts[leaving].is_up, ms_max=1500)  # three attempts
    told = [describe_trace(trace) for _, node_id, trace in cluster.traces if node_id == leaving]
    assert "controlled-shutdown-given-up leads=1 partitions=t-0" in told


def test_zombie_leader_cannot_commit_behind_its_successor(cluster: ZkCluster) -> None:
    """Discussion 3: it needs every member of the ISR that it knows, or a write that fails.

    It wants to shrink the ISR as soon as it wakes up, and before it hears of anything.
    """
    admin, client = Administrator(cluster), Producer(cluster)
    zombie = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    rest = tuple(each for each in (1, 2, 3) if each != zombie)
    admin.create_topic("t", {0: (zombie, *rest)})
    settled(cluster)
    cluster.network.takes = lambda message: (
        message.target == zombie
        and (message.channel == "replica-fetch" or isinstance(message.body, LeaderAndIsrRequest))
    )
    old = replica(cluster, zombie, T)
    assert old is not None
    before = old.open_log.high_watermark
    answers = client.send(zombie, T, b"nobody fetches it")
    cluster.run(500)
    cluster.pause(zombie)
    cluster.run_until(lambda: rest[0] in leaders(cluster, T))
    cluster.resume(zombie)
    cluster.run(3000)
    assert any(trace.event == "isr-not-written" for _, _, trace in cluster.traces)
    state = state_of(cluster, admin, T)
    assert state is not None
    assert state.leader == rest[0], "its conditional write has failed"
    assert old.open_log.high_watermark == before
    assert [getattr(each, "error_code", None) for each in answers] in (
        [],
        [ErrorCode.NOT_LEADER_OR_FOLLOWER],
    )


@pytest.mark.parametrize("design", [ZK_V2, ZK_V3], ids=lambda each: each.name)
def test_high_watermark_is_found_again_by_a_broker_that_has_crashed(design: Design) -> None:
    """The checkpoint of startReplica(): what lies above it is taken back, and no more."""
    cluster = begin(design)
    told = write_to(cluster, partitions=1)
    cluster.run(3000)
    (leader,) = leaders(cluster, of("orders"))
    follower = next(each for each in (1, 2, 3) if each != leader)
    cluster.crash(follower)
    saved = dict(cluster.hosts[follower].disk.high_watermarks)
    assert told.acknowledged
    assert saved["orders-0"] > 0
    crashed_ms = cluster.world.now_ms
    cluster.restart(follower)
    cluster.run_until(lambda: replica(cluster, follower, of("orders")) is not None)
    cluster.run(500)
    found = [
        dict(trace.fields)
        for ms, node, trace in cluster.traces
        if ms >= crashed_ms and node == follower and trace.event == "partition-role"
    ]
    end_offset = found[0]["end_offset"]
    assert isinstance(end_offset, int)
    assert end_offset > saved["orders-0"] == found[0]["high_watermark"]


def test_clients_lose_nothing_while_leader_and_controller_die(cluster: ZkCluster) -> None:
    told = write_to(cluster)
    cluster.run(1500)
    controller = cluster.active_controller
    assert controller is not None
    leader = next(each for each in (1, 2, 3) if each != controller)
    cluster.crash(leader)
    cluster.run(3000)
    cluster.restart(leader)
    cluster.run(2000)
    cluster.crash(controller)
    cluster.run(4000)
    cluster.restart(controller)
    cluster.run(3000)
    assert len(told.acknowledged) > 300
    cluster.run_until(lambda: len(told.unread) < 10)


def test_leaders_write_their_isr_themselves_and_take_replicas_back(cluster: ZkCluster) -> None:
    told = write_to(cluster, partitions=1)
    cluster.run(1500)
    which = of("orders")
    admin = Administrator(cluster)
    (leader,) = leaders(cluster, which)
    slow = next(each for each in (1, 2, 3) if each not in (leader, cluster.active_controller))
    cluster.network.takes = lambda message: (  # its session lives on: the controller sees nothing
        message.channel == "replica-fetch" and message.source == slow
    )
    cluster.run(3000)
    state = state_of(cluster, admin, which)
    assert state is not None
    assert slow not in state.isr
    led = replica(cluster, leader, which)
    assert led is not None
    assert isinstance(led.role, LeaderOf)
    assert led.role.leader_epoch == state.leader_epoch == 0, "no election"
    cluster.network.takes = lambda _message: False
    cluster.run(3000)
    state = state_of(cluster, admin, which)
    assert state is not None
    assert slow in state.isr
    assert told.acknowledged


def test_leaders_write_too_when_the_controller_takes_longer_than_the_lag_time() -> None:
    """Each of P partitions is written once with success; whoever comes second reads it again. So P
    partitions cost more than P writes where ZooKeeper is slow, or partitions are many."""
    count = 30
    cluster = begin(ZK_V3, session_timeout_ms=1000, lag_time_max_ms=1200)
    admin, producer = Administrator(cluster), Producer(cluster)
    dead = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    others = tuple(each for each in (1, 2, 3) if each != dead)
    replicas = [(*others[n % 2 :], *others[: n % 2], dead) for n in range(count)]
    admin.create_topic("t", dict(enumerate(replicas)))
    cluster.run_until(lambda: all(leaders(cluster, of("t", n)) for n in range(count)))
    cluster.run(500)
    fast_us = cluster.ensemble.draw_us
    cluster.ensemble.draw_us = lambda: fast_us() + 10_000  # type: ignore[method-assign]
    before = {each: Counter(cluster.clients[each].counts()) for each in others}
    cluster.crash(dead)
    for n in range(count):
        producer.send(replicas[n][0], of("t", n), b"so that the dead broker lags")
    cluster.run(6000)
    states = [state_of(cluster, admin, of("t", n)) for n in range(count)]
    assert all(state is not None and dead not in state.isr for state in states)
    spent = {each: Counter(cluster.clients[each].counts()) - before[each] for each in others}
    (leader,) = (each for each in others if each != cluster.active_controller)
    assert spent[leader]["zk.set"] > 0, "it has not waited"
    sets, gets = (sum(each[name] for each in spent.values()) for name in ("zk.set", "zk.get"))
    looked_at = len(others) + count
    assert sets - count == gets - looked_at > 0
