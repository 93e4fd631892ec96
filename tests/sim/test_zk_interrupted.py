"""zk-redesign cut off in the middle of what it does: events begin anew and come to their end.

The connection comes back within the session. What was written and not answered is the hard case:
nobody knows of it but ZooKeeper.
"""

from collections.abc import Callable

import pytest

from controller.zk.controller_context import Context
from controller.zk.zk_metadata import state_path
from jepsen_like.sim.assemblies.designs.zk_cluster import ZkCluster
from tests.sim.zookeeper import Administrator, Producer, begin, leaders, of, replica, state_of
from wire.messages.topics import CreatableTopic, CreateTopicsRequest
from wire.zk import paths
from wire.zk.designs import ZK_KIP497, ZK_REDESIGN, ZK_V3, Design
from wire.zk.session import Create, Data, GetData
from wire.zk.znodes import PartitionState, Reassignments, TopicAssignment

T = of("t")


@pytest.fixture
def cluster() -> ZkCluster:
    return begin(ZK_REDESIGN)


def settled(cluster: ZkCluster) -> None:
    cluster.run_until(lambda: len(leaders(cluster, T)) == 1)
    cluster.run(300)


def step_by_step(cluster: ZkCluster, is_so: Callable[[], bool]) -> None:
    """To the very moment."""
    world = cluster.world
    end_us = world.now_us + 20_000_000
    while not is_so():
        assert world.now_us < end_us
        world.run_until(world.now_us + 20, events_max=2_000_000)


def hiccup(cluster: ZkCluster, *, when: Callable[[Context], bool]) -> None:
    """The controller's connection goes in the middle of what it does, and comes back in time."""
    controller = cluster.active_controller
    assert controller is not None

    def is_so() -> bool:
        context = cluster.nodes[controller].controller.context
        return context is not None and when(context)

    step_by_step(cluster, is_so)
    cluster.cut_session(controller)
    cluster.run(700)  # it notices after two thirds of its time-out
    cluster.heal_session(controller)


def test_failure_is_dealt_with_to_the_end_though_the_connection_goes_meanwhile(
    cluster: ZkCluster,
) -> None:
    admin = Administrator(cluster)
    dead = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    rest = tuple(each for each in (1, 2, 3) if each != dead)
    admin.create_topic("t", {0: (dead, *rest)})
    settled(cluster)
    cluster.crash(dead)
    hiccup(cluster, when=lambda context: dead not in context.live)
    cluster.run_until(lambda: leaders(cluster, T) == [rest[0]])


@pytest.mark.parametrize("design", [ZK_REDESIGN, ZK_KIP497, ZK_V3], ids=lambda each: each.name)
def test_leader_whose_election_was_written_and_not_answered_is_told(design: Design) -> None:
    cluster = begin(design)
    admin = Administrator(cluster)
    dead = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    rest = tuple(each for each in (1, 2, 3) if each != dead)
    admin.create_topic("t", {0: (dead, *rest)})
    settled(cluster)
    cluster.crash(dead)

    def is_written_unheard(context: Context) -> bool:
        found = cluster.ensemble.tree.read(GetData(path=state_path(design, T)))
        assert isinstance(found, Data)
        written = PartitionState.decode(found.data)
        return written.leader == rest[0] and context.states[T].leader == dead

    hiccup(cluster, when=is_written_unheard)
    cluster.run_until(lambda: leaders(cluster, T) == [rest[0]])


def test_topic_is_created_to_the_end_though_the_connection_goes_meanwhile(
    cluster: ZkCluster,
) -> None:
    owner = cluster.active_controller
    assert owner is not None
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=3)
    Producer(cluster).ask(owner, CreateTopicsRequest(topics=(topic,), timeout_ms=1000))
    hiccup(cluster, when=lambda context: "t" in context.assignments)
    cluster.run_until(lambda: len(leaders(cluster, T)) == 1)
    assert cluster.active_controller == owner, "in the same session"


def test_broker_that_is_registered_anew_obeys_what_comes_before_it_hears_of_it(
    cluster: ZkCluster,
) -> None:
    admin = Administrator(cluster)
    anew = next(each for each in (1, 2, 3) if each != cluster.active_controller)
    admin.create_topic("t", {0: (anew,)})
    settled(cluster)
    session_id = cluster.nodes[anew].member.session.id
    cluster.ensemble.expire(session_id)

    def is_anew() -> bool:
        found = cluster.ensemble.tree.read(GetData(path=paths.broker(anew)))
        return isinstance(found, Data) and found.stat.ephemeral_owner != session_id

    step_by_step(cluster, is_anew)
    cluster.cut_session(anew)  # the answer to its registration waits
    cluster.run(300)
    cluster.heal_session(anew)
    cluster.run_until(lambda: leaders(cluster, T) == [anew])
    state = state_of(cluster, admin, T)
    assert state is not None
    led = replica(cluster, anew, T)
    assert led is not None
    assert (state.leader, led.leader_epoch) == (anew, state.leader_epoch), "not of its earlier life"


def test_deletion_is_ended_though_the_connection_goes_meanwhile(cluster: ZkCluster) -> None:
    admin = Administrator(cluster)
    admin.create_topic("t", {0: (1, 2, 3)})
    settled(cluster)
    admin.do(Create(path=f"{paths.DELETE_TOPICS}/t"))

    def is_half_gone(_context: Context) -> bool:
        nodes = cluster.ensemble.tree.paths()
        return state_path(ZK_REDESIGN, T) not in nodes and paths.topic("t") in nodes

    hiccup(cluster, when=is_half_gone)
    cluster.run_until(lambda: admin.children(paths.DELETE_TOPICS) == ())
    assert admin.children(paths.TOPICS) == ()


def test_broker_that_has_stopped_a_topic_does_not_begin_it_anew_when_it_is_registered_anew(
    cluster: ZkCluster,
) -> None:
    """The topic waits for another broker; one that comes back was told of it as of any other."""
    admin = Administrator(cluster)
    anew, down = (each for each in (1, 2, 3) if each != cluster.active_controller)
    admin.create_topic("t", {0: (anew, down)})
    settled(cluster)
    cluster.crash(down)
    cluster.run(1500)
    admin.do(Create(path=f"{paths.DELETE_TOPICS}/t"))
    cluster.run_until(lambda: leaders(cluster, T) == [])
    cluster.ensemble.expire(cluster.nodes[anew].member.session.id)
    cluster.run(500)
    assert replica(cluster, anew, T) is None
    cluster.restart(down)
    cluster.run_until(lambda: admin.children(paths.TOPICS) == ())
    assert all("t-0" not in cluster.hosts[each].disk.logs for each in (anew, down))


def is_told_to_grow(cluster: ZkCluster) -> bool:
    found = cluster.ensemble.tree.read(GetData(path=paths.topic("t")))
    return isinstance(found, Data) and bool(TopicAssignment.decode(found.data).adding)


def has_left_its_old_replicas(cluster: ZkCluster) -> bool:
    found = cluster.ensemble.tree.read(GetData(path=state_path(ZK_REDESIGN, T)))
    return isinstance(found, Data) and PartitionState.decode(found.data).isr == (2, 3)


def is_where_it_shall_be(cluster: ZkCluster) -> bool:
    found = cluster.ensemble.tree.read(GetData(path=paths.topic("t")))
    assert isinstance(found, Data)
    return TopicAssignment.decode(found.data).partitions == {0: (2, 3)}


@pytest.mark.parametrize(
    "moment", [is_told_to_grow, has_left_its_old_replicas, is_where_it_shall_be]
)
def test_partition_moves_to_the_end_though_the_connection_goes_meanwhile(
    cluster: ZkCluster, moment: Callable[[ZkCluster], bool]
) -> None:
    admin = Administrator(cluster)
    admin.create_topic("t", {0: (1, 2)})
    settled(cluster)
    wanted = Reassignments(replicas={("t", 0): (2, 3)}).encode()
    admin.do(Create(path=paths.REASSIGN_PARTITIONS, data=wanted))
    hiccup(cluster, when=lambda _context: moment(cluster))
    cluster.run_until(lambda: admin.data(paths.REASSIGN_PARTITIONS) is None)
    cluster.run_until(lambda: replica(cluster, 1, T) is None)
    assert is_where_it_shall_be(cluster)
    assert leaders(cluster, T) == [2]
