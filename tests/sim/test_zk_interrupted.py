"""zk-redesign cut off in the middle of what it does: events begin anew and come to their end.

The connection comes back within the session. What was written and not answered is the hard case:
nobody knows of it but ZooKeeper.
"""

from collections.abc import Callable

import pytest

from controller.zk.controller_context import Context
from controller.zk.zk_metadata import state_path
from tests.sim.zookeeper import Producer, Scene, T, begin
from wire.messages.topics import CreatableTopic, CreateTopicsRequest
from wire.zk import paths
from wire.zk.designs import ZK_KIP497, ZK_REDESIGN, ZK_V3, Design
from wire.zk.session import Create, Data, GetData
from wire.zk.znodes import PartitionState, TopicAssignment


@pytest.fixture
def cluster() -> Scene:
    return begin(ZK_REDESIGN)


def hiccup(cluster: Scene, *, when: Callable[[Context], bool]) -> None:
    """The controller's connection goes in the middle of what it does, and comes back in time."""
    controller = cluster.controller

    def is_so() -> bool:
        context = cluster.nodes[controller].controller.context
        return context is not None and when(context)

    cluster.step_to(is_so)
    cluster.cut_session(controller)
    cluster.run(700)  # it notices after two thirds of its time-out
    cluster.heal_session(controller)


def test_failure_is_dealt_with_to_the_end_though_the_connection_goes_meanwhile(
    cluster: Scene,
) -> None:
    dead, rest = cluster.one_and_rest()
    cluster.create({0: (dead, *rest)})
    cluster.crash(dead)
    hiccup(cluster, when=lambda context: dead not in context.live)
    cluster.run_until(lambda: cluster.leaders() == [rest[0]])


@pytest.mark.parametrize("design", [ZK_REDESIGN, ZK_KIP497, ZK_V3], ids=lambda each: each.name)
def test_leader_whose_election_was_written_and_not_answered_is_told(design: Design) -> None:
    cluster = begin(design)
    dead, rest = cluster.one_and_rest()
    cluster.create({0: (dead, *rest)})
    cluster.crash(dead)

    def is_written_unheard(context: Context) -> bool:
        found = cluster.ensemble.tree.read(GetData(path=state_path(design, T)))
        assert isinstance(found, Data)
        written = PartitionState.decode(found.data)
        return written.leader == rest[0] and context.states[T].leader == dead

    hiccup(cluster, when=is_written_unheard)
    cluster.run_until(lambda: cluster.leaders() == [rest[0]])


def test_topic_is_created_to_the_end_though_the_connection_goes_meanwhile(
    cluster: Scene,
) -> None:
    owner = cluster.controller
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=3)
    Producer(cluster).ask(owner, CreateTopicsRequest(topics=(topic,), timeout_ms=1000))
    hiccup(cluster, when=lambda context: "t" in context.assignments)
    cluster.run_until(lambda: len(cluster.leaders()) == 1)
    assert cluster.active_controller == owner, "in the same session"


def test_broker_that_is_registered_anew_obeys_what_comes_before_it_hears_of_it(
    cluster: Scene,
) -> None:
    anew = cluster.others[0]
    cluster.create({0: (anew,)})
    session_id = cluster.nodes[anew].member.session.id
    cluster.ensemble.expire(session_id)

    def is_anew() -> bool:
        found = cluster.ensemble.tree.read(GetData(path=paths.broker(anew)))
        return isinstance(found, Data) and found.stat.ephemeral_owner != session_id

    cluster.step_to(is_anew)
    cluster.cut_session(anew)  # the answer to its registration waits
    cluster.run(300)
    cluster.heal_session(anew)
    cluster.settle(ms=50)
    state, led = cluster.state(), cluster.held(anew)
    assert (state.leader, led.leader_epoch) == (anew, state.leader_epoch), "not of its earlier life"


def test_deletion_is_ended_though_the_connection_goes_meanwhile(cluster: Scene) -> None:
    admin = cluster.create({0: (1, 2, 3)})
    admin.do(Create(path=f"{paths.DELETE_TOPICS}/t"))

    def is_half_gone(_context: Context) -> bool:
        nodes = cluster.ensemble.tree.paths()
        return state_path(ZK_REDESIGN, T) not in nodes and paths.topic("t") in nodes

    hiccup(cluster, when=is_half_gone)
    cluster.run_until(lambda: admin.children(paths.DELETE_TOPICS) == ())
    assert admin.children(paths.TOPICS) == ()


def test_broker_that_has_stopped_a_topic_does_not_begin_it_anew_when_it_is_registered_anew(
    cluster: Scene,
) -> None:
    """The topic waits for another broker; one that comes back was told of it as of any other."""
    anew, down = cluster.others
    admin = cluster.create({0: (anew, down)})
    cluster.crash(down)
    cluster.run(1500)
    admin.do(Create(path=f"{paths.DELETE_TOPICS}/t"))
    cluster.run_until(lambda: cluster.leaders() == [])
    cluster.ensemble.expire(cluster.nodes[anew].member.session.id)
    cluster.run(500)
    assert cluster.replica(anew) is None
    cluster.restart(down)
    cluster.run_until(lambda: admin.children(paths.TOPICS) == ())
    assert all(not cluster.has_log(each) for each in (anew, down))


def is_told_to_grow(cluster: Scene) -> bool:
    found = cluster.ensemble.tree.read(GetData(path=paths.topic("t")))
    return isinstance(found, Data) and bool(TopicAssignment.decode(found.data).adding)


def has_left_its_old_replicas(cluster: Scene) -> bool:
    found = cluster.ensemble.tree.read(GetData(path=state_path(ZK_REDESIGN, T)))
    return isinstance(found, Data) and PartitionState.decode(found.data).isr == (2, 3)


def is_where_it_shall_be(cluster: Scene) -> bool:
    found = cluster.ensemble.tree.read(GetData(path=paths.topic("t")))
    assert isinstance(found, Data)
    return TopicAssignment.decode(found.data).partitions == {0: (2, 3)}


@pytest.mark.parametrize(
    "moment", [is_told_to_grow, has_left_its_old_replicas, is_where_it_shall_be]
)
def test_partition_moves_to_the_end_though_the_connection_goes_meanwhile(
    cluster: Scene, moment: Callable[[Scene], bool]
) -> None:
    admin = cluster.create({0: (1, 2)})
    admin.move({0: (2, 3)})
    hiccup(cluster, when=lambda _context: moment(cluster))
    cluster.run_until(admin.has_moved)
    cluster.run_until(lambda: cluster.replica(1) is None)
    assert is_where_it_shall_be(cluster)
    assert cluster.leaders() == [2]
