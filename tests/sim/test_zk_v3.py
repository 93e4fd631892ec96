"""zk-v3 on an ensemble in memory: the procedures of its document, seen in znodes and replicas."""

from collections import Counter

import pytest

from broker.partition.partition import FollowerOf, LeaderOf
from jepsen_like.sim.world.network import Message
from quorum.core.effects import Effect
from quorum.node.driver import describe_trace
from quorum.zookeeper.zk_effects import ZkRequest
from tests.sim.zookeeper import Administrator, Producer, Scene, T, begin, nothing, of
from wire.errors import ErrorCode
from wire.message import replace
from wire.zk import paths
from wire.zk.control_rpc import LeaderAndIsrRequest
from wire.zk.designs import ZK_REDESIGN, ZK_V2, ZK_V3, Design
from wire.zk.session import Delete, SetData
from wire.zk.znodes import PartitionState, TopicAssignment


@pytest.fixture
def cluster() -> Scene:
    return begin(ZK_V3)


def test_first_broker_to_create_the_node_is_the_controller_and_counts_the_epoch(
    cluster: Scene,
) -> None:
    admin = Administrator(cluster)
    assert admin.children(paths.BROKER_IDS) == ("1", "2", "3")
    owner = admin.data(paths.CONTROLLER)
    assert owner is not None
    assert f'"brokerid":{cluster.active_controller}' in owner.decode()
    assert admin.data(paths.CONTROLLER_EPOCH) == b"1"


def test_topic_whose_node_is_created_gets_leaders_and_all_live_replicas_in_sync(
    cluster: Scene,
) -> None:
    cluster.create({0: (2, 1, 3), 1: (3, 2)})
    state = cluster.state()
    assert (state.leader, state.isr, state.leader_epoch) == (2, (2, 1, 3), 0)
    assert cluster.leaders(of("t", 1)) == [3]
    assert cluster.replica(1, of("t", 1)) is None, "not assigned"
    follower = cluster.held(1)
    assert isinstance(follower.role, FollowerOf)


def test_broker_failure_elects_from_the_isr_and_shrinks_it_in_the_same_write(
    cluster: Scene,
) -> None:
    admin = Administrator(cluster)
    controller = cluster.active_controller
    dead = next(each for each in (1, 2, 3) if each != controller)
    rest = tuple(each for each in (1, 2, 3) if each != dead)
    admin.create_topic("t", {0: (dead, *rest)})
    cluster.settle()
    cluster.crash(dead)
    cluster.run_until(lambda: cluster.leaders() == [rest[0]])
    state = cluster.state()
    assert (state.leader, state.isr, state.leader_epoch) == (rest[0], rest, 1)


class Calls(Scene):
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
    monkeypatch.setattr("tests.sim.zookeeper.Scene", Calls)
    cluster = begin(ZK_V3)
    assert isinstance(cluster, Calls)
    admin = Administrator(cluster)
    dead, rest = cluster.one_and_rest()
    admin.create_topic("t", dict.fromkeys(range(10), (dead, *rest)))
    cluster.settle(of("t", 9))
    before = cluster.writes
    cluster.crash(dead)
    cluster.run_until(lambda: cluster.leaders(of("t", 9)) == [rest[0]])
    cluster.run(200)
    assert cluster.writes - before == 10


def test_partition_without_a_live_replica_has_no_leader_until_one_comes_back(
    cluster: Scene,
) -> None:
    dead = cluster.others[0]
    cluster.create({0: (dead,)})
    cluster.crash(dead)
    cluster.run(3000)
    state = cluster.state()
    assert (state.leader, state.isr) == (-1, (dead,))
    cluster.restart(dead)
    cluster.settle()
    assert cluster.leaders() == [dead]


def test_without_a_live_member_of_the_isr_any_live_replica_leads(cluster: Scene) -> None:
    """A.3.2: "potential data loss in this case"."""
    admin = Administrator(cluster)
    controller = cluster.controller
    dead = [each for each in (1, 2, 3) if each != controller]
    admin.create_topic("t", {0: (dead[0], controller)})
    cluster.settle()
    # The other replica has left the ISR.
    alone = PartitionState(leader=dead[0], leader_epoch=0, isr=(dead[0],), controller_epoch=1)
    admin.do(SetData(path="/brokers/topics/t/0/leaderAndISR", data=alone.encode()))
    cluster.crash(dead[0])
    cluster.run_until(lambda: cluster.leaders() == [controller])
    elected = cluster.state()
    assert (elected.leader, elected.isr) == (controller, (controller,))


def test_new_controller_tells_all_brokers_all_that_is_theirs(cluster: Scene) -> None:
    admin = cluster.create({0: (1, 2, 3)})
    old = cluster.controller
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
    assert len(cluster.leaders()) == 1


def test_reassignment_ends_when_the_isr_is_the_old_replicas_and_the_new_ones(
    cluster: Scene,
) -> None:
    admin = cluster.create({0: (1, 2)})
    admin.ask_under(paths.PARTITIONS_REASSIGNED, 0, (2, 3))
    cluster.run_until(lambda: cluster.leaders() == [2])
    cluster.run(500)
    state = cluster.state()
    assert (state.leader, state.isr) == (2, (2, 3))
    assert admin.assignment() == {0: (2, 3)}
    assert admin.children(paths.PARTITIONS_REASSIGNED) == ()
    assert cluster.replica(1) is None, "StopReplica took the log of the old one"
    assert not cluster.has_log(1)


def test_agent_wakes_when_it_is_told_and_from_time_to_time() -> None:
    """F: the new replica is in sync at once, and nobody tells the agent."""
    cluster = begin(ZK_V3, agent_wake_ms=5000)
    admin = cluster.create({0: (1, 2)})
    admin.ask_under(paths.PARTITIONS_REASSIGNED, 0, (2, 3))
    told_ms = cluster.world.now_ms
    cluster.run_until(lambda: 3 in cluster.state().isr, ms_max=1000)
    cluster.run(3000)
    assert cluster.leaders() == [1], "in sync, and not seen yet"
    cluster.run_until(lambda: cluster.leaders() == [2])
    assert 4900 <= cluster.world.now_ms - told_ms <= 5500


def test_partitions_are_added_and_removed_by_their_paths(cluster: Scene) -> None:
    admin = cluster.create({0: (1, 2)})
    admin.ask_under(paths.PARTITIONS_ADD, 1, (3, 1))
    cluster.settle(of("t", 1))
    assert cluster.leaders(of("t", 1)) == [3]
    assert admin.assignment() == {0: (1, 2), 1: (3, 1)}
    admin.ask_under(paths.PARTITIONS_REMOVE, 1, None)
    cluster.run_until(lambda: cluster.replica(3, of("t", 1)) is None)
    cluster.run(300)
    assert admin.assignment() == {0: (1, 2)}


def test_deleted_topic_is_stopped_on_every_broker(cluster: Scene) -> None:
    admin = cluster.create({0: (1, 2, 3)})
    for path in ("/brokers/topics/t/0/leaderAndISR", "/brokers/topics/t/0", "/brokers/topics/t"):
        admin.do(Delete(path=path))
    cluster.run_until(lambda: all(cluster.replica(each) is None for each in (1, 2, 3)))
    assert all(not cluster.has_log(each) for each in (1, 2, 3))


def test_broker_that_is_in_sync_and_not_assigned_has_no_replica_once_it_starts(
    cluster: Scene,
) -> None:
    """E.4, of one that its leader has taken back since nobody has told it of the move."""
    away, rest = cluster.one_and_rest()
    admin = cluster.create({0: (*rest, away)})
    cluster.crash(away)
    cluster.run_until(lambda: cluster.state().isr == rest)
    admin.do(SetData(path=paths.topic("t"), data=TopicAssignment(partitions={0: rest}).encode()))
    state = cluster.state()
    data = replace(state, isr=(*rest, away)).encode()
    admin.do(SetData(path=paths.partition_leader_and_isr("t", 0), data=data))
    cluster.restart(away)
    cluster.run_until(lambda: not cluster.has_log(away))


def test_first_command_to_a_broker_that_joins_names_all_that_it_has(cluster: Scene) -> None:
    """So it drops what has moved from it while it read, registered, and was not known to live."""
    away = cluster.others[0]
    cluster.create({0: (1, 2, 3)})
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
    cluster: Scene,
) -> None:
    """E: commands that it missed are made up for by what ZooKeeper says."""
    admin = Administrator(cluster)
    away = cluster.others[0]
    admin.create_topic("t", {0: (1, 2, 3)})
    admin.create_topic("gone", {0: (1, 2, 3)})
    cluster.settle()
    cluster.settle(of("gone"))
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
    cluster.run_until(lambda: cluster.replica(away) is not None)
    cluster.run(1000)
    assert cluster.replica(away, of("gone")) is None
    state = cluster.state()
    assert sorted(state.isr) == [1, 2, 3], "it has caught up, and its leader has written so"


def test_controlled_shutdown_moves_leaderships_and_shrinks_the_isr_first(
    cluster: Scene,
) -> None:
    leaving, rest = cluster.one_and_rest()
    cluster.create({0: (leaving, *rest)})
    cluster.shut_down(leaving)

    def has_moved() -> bool:
        """It may fetch from its successor, and be in sync again, before it is gone."""
        state = cluster.state()
        return (state.leader, state.isr) == (rest[0], rest)

    cluster.run_until(has_moved, ms_max=500)
    cluster.run_until(lambda: not cluster.hosts[leaving].is_up)


@pytest.mark.parametrize("design", [ZK_V3, ZK_REDESIGN], ids=lambda each: each.name)
def test_controlled_shutdown_without_another_replica_in_sync_ends_and_names_what_is_left(
    design: Design,
) -> None:
    cluster = begin(design)
    leaving = cluster.others[0]
    cluster.create({0: (leaving,)})
    cluster.shut_down(leaving)
    cluster.run_until(lambda: not cluster.hosts[leaving].is_up, ms_max=1500)  # three attempts
    told = [describe_trace(trace) for _, node_id, trace in cluster.traces if node_id == leaving]
    assert "controlled-shutdown-given-up leads=1 partitions=t-0" in told


def test_zombie_leader_cannot_commit_behind_its_successor(cluster: Scene) -> None:
    """Discussion 3: it needs every member of the ISR that it knows, or a write that fails.

    It wants to shrink the ISR as soon as it wakes up, and before it hears of anything.
    """
    zombie, rest = cluster.one_and_rest()
    _admin, client = cluster.create({0: (zombie, *rest)}), Producer(cluster)
    cluster.network.takes = lambda message: (
        message.target == zombie
        and (message.channel == "replica-fetch" or isinstance(message.body, LeaderAndIsrRequest))
    )
    old = cluster.held(zombie)
    before = old.open_log.high_watermark
    answers = client.send(zombie, T, b"nobody fetches it")
    cluster.run(500)
    cluster.pause(zombie)
    cluster.run_until(lambda: rest[0] in cluster.leaders())
    cluster.resume(zombie)
    cluster.run(3000)
    assert any(trace.event == "isr-not-written" for _, _, trace in cluster.traces)
    state = cluster.state()
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
    told = cluster.write(partitions=1)
    cluster.run(3000)
    (leader,) = cluster.leaders(of("orders"))
    follower = next(each for each in (1, 2, 3) if each != leader)
    cluster.crash(follower)
    saved = dict(cluster.hosts[follower].disk.high_watermarks)
    assert told.acknowledged
    assert saved["orders-0"] > 0
    crashed_ms = cluster.world.now_ms
    cluster.restart(follower)
    cluster.run_until(lambda: cluster.replica(follower, of("orders")) is not None)
    cluster.run(500)
    found = [
        dict(trace.fields)
        for ms, node, trace in cluster.traces
        if ms >= crashed_ms and node == follower and trace.event == "partition-role"
    ]
    end_offset = found[0]["end_offset"]
    assert isinstance(end_offset, int)
    assert end_offset > saved["orders-0"] == found[0]["high_watermark"]


def test_leaders_write_their_isr_themselves_and_take_replicas_back(cluster: Scene) -> None:
    told = cluster.write(partitions=1)
    which = of("orders")
    (leader,) = cluster.leaders(which)
    slow = next(each for each in (1, 2, 3) if each not in (leader, cluster.active_controller))
    cluster.network.takes = lambda message: (  # its session lives on: the controller sees nothing
        message.channel == "replica-fetch" and message.source == slow
    )
    cluster.run(3000)
    state = cluster.state(which)
    assert slow not in state.isr
    led = cluster.held(leader, which)
    assert isinstance(led.role, LeaderOf)
    assert led.role.leader_epoch == state.leader_epoch == 0, "no election"
    cluster.network.takes = nothing
    cluster.run(3000)
    state = cluster.state(which)
    assert slow in state.isr
    assert told.acknowledged


def test_leaders_write_too_when_the_controller_takes_longer_than_the_lag_time() -> None:
    """Each of P partitions is written once with success; whoever comes second reads it again. So P
    partitions cost more than P writes where ZooKeeper is slow, or partitions are many."""
    count = 30
    cluster = begin(ZK_V3, session_timeout_ms=1000, lag_time_max_ms=1200)
    admin, producer = Administrator(cluster), Producer(cluster)
    dead, others = cluster.one_and_rest()
    replicas = [(*others[n % 2 :], *others[: n % 2], dead) for n in range(count)]
    admin.create_topic("t", dict(enumerate(replicas)))
    cluster.run_until(lambda: all(cluster.leaders(of("t", n)) for n in range(count)))
    cluster.run(500)
    fast_us = cluster.ensemble.draw_us
    cluster.ensemble.draw_us = lambda: fast_us() + 10_000  # type: ignore[method-assign]
    before = {each: Counter(cluster.clients[each].counts()) for each in others}
    cluster.crash(dead)
    for n in range(count):
        producer.send(replicas[n][0], of("t", n), b"so that the dead broker lags")
    cluster.run(6000)
    states = [cluster.state(of("t", n)) for n in range(count)]
    assert all(dead not in state.isr for state in states)
    spent = {each: Counter(cluster.clients[each].counts()) - before[each] for each in others}
    (leader,) = (each for each in others if each != cluster.active_controller)
    assert spent[leader]["zk.set"] > 0, "it has not waited"
    sets, gets = (sum(each[name] for each in spent.values()) for name in ("zk.set", "zk.get"))
    looked_at = len(others) + count
    assert sets - count == gets - looked_at > 0
