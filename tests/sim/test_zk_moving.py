"""Reassignments that lose their connection to ZooKeeper on the way, or are redirected."""

from collections.abc import Callable

from controller.zk.zk_metadata import state_path
from jepsen_like.scenarios.stage.story import Production
from jepsen_like.scenarios.zookeeper.directed_zookeeper import DirectedZooKeeper
from jepsen_like.sim.assemblies.cluster.invariants.watched import TOPIC
from jepsen_like.sim.world.network import Message
from tests.sim.zookeeper import Administrator, Scene, begin, nothing, of
from wire.zk import paths
from wire.zk.control_rpc import StopReplicaRequest
from wire.zk.designs import ZK_KIP497
from wire.zk.session import Create, Delete, Exists, GetData, Operation, SetData
from wire.zk.znodes import PartitionState, Reassignments, TopicAssignment


def topic_of(stage: DirectedZooKeeper) -> TopicAssignment:
    found = stage.cluster.ensemble.tree.read(GetData(path=paths.topic(TOPIC)))
    return TopicAssignment.decode(getattr(found, "data", b""))


def replicas_of(stage: DirectedZooKeeper) -> tuple[int, ...]:
    return topic_of(stage).partitions[0]


def moved_though_it_hangs_up(at: Callable[[Operation], bool]) -> None:
    """A partition moves, and the controller's connection breaks twice when it asks for this."""
    stage = DirectedZooKeeper(Production(), design="zk-redesign", brokers=4)
    controller = stage.controller
    a, b, c = stage.others(controller)
    stage.create(a, b)
    broken: list[Operation] = []

    def look(node: int, operation: Operation) -> None:
        if node == controller and len(broken) < 2 and at(operation):
            broken.append(operation)
            stage.cluster.ensemble.hang_up(stage.cluster.clients[node].session_id)

    stage.asked = look
    wanted = Reassignments(replicas={(TOPIC, 0): (a, c)})
    stage.ask_zookeeper(Create(path=paths.REASSIGN_PARTITIONS, data=wanted.encode()))
    stage.until(lambda: replicas_of(stage) == (a, c), "c has taken the place of b", bound="L-ISR")
    assert len(broken) == 2
    stage.finish()


def writes_topic(operation: Operation) -> bool:
    return isinstance(operation, SetData) and operation.path == paths.topic(TOPIC)


def watches_state(operation: Operation) -> bool:
    path = state_path(ZK_KIP497, of(TOPIC))
    return isinstance(operation, Exists) and operation.watch and operation.path == path


def test_expansion_that_begins_anew_goes_on() -> None:
    """The connection breaks when the new assignment is written: the event is taken up again."""
    moved_though_it_hangs_up(at=writes_topic)


def test_states_that_could_not_be_read_are_read_again() -> None:
    """The connection breaks when the state is about to be watched, and nobody writes it later."""
    moved_though_it_hangs_up(at=watches_state)


def cluster_of_four() -> tuple[Scene, Administrator, int, int, int]:
    """Also: the brokers that are not the controller."""
    cluster = begin(ZK_KIP497, brokers=(1, 2, 3, 4))
    a, b, c = (each for each in (1, 2, 3, 4) if each != cluster.active_controller)
    return cluster, Administrator(cluster), a, b, c


def interrupt(cluster: Scene, when: Callable[[], bool], meanwhile: Callable[[], object]) -> None:
    """Cut the controller off at that very moment, and let brokers answer."""
    controller = cluster.controller
    cluster.step_to(when)
    cluster.cut_session(controller)
    meanwhile()
    cluster.run(650)
    cluster.heal_session(controller)


def test_partition_that_has_moved_is_not_listed_as_moving_when_another_of_its_topic_ends() -> None:
    cluster, admin, a, b, c = cluster_of_four()
    admin.create_topic("t", {0: (a, b), 1: (a, b)})
    cluster.run(500)
    admin.move({0: (b, c), 1: (b, c)})
    cluster.run_until(admin.has_moved)
    data = admin.data(paths.topic("t"))
    assert data is not None
    moved = TopicAssignment.decode(data)
    assert (moved.partitions, moved.adding, moved.removing) == ({0: (b, c), 1: (b, c)}, {}, {})


def test_replica_that_a_redirected_move_removed_comes_back_if_it_is_wanted_again() -> None:
    """The connection breaks when its removal is written, and the node asks for it by then."""
    cluster, admin, a, b, c = cluster_of_four()
    owner = cluster.controller
    admin.create_topic("t", {0: (a, owner)})
    cluster.run(500)
    cluster.crash(c)
    cluster.run(1500)
    admin.move({0: (b, c)})
    cluster.run_until(lambda: cluster.replica(b) is not None)
    cluster.run(500)
    admin.move({0: (a, c)})
    interrupt(
        cluster,
        when=lambda: b not in cluster.assigned(),
        meanwhile=lambda: admin.move({0: (b, c)}),
    )
    cluster.run(1000)
    cluster.restart(c)
    cluster.run_until(admin.has_moved)
    assert cluster.assigned() == (b, c)
    admin.do(Create(path=f"{paths.DELETE_TOPICS}/t"))
    cluster.run_until(lambda: admin.children(paths.TOPICS) == ())


def test_cancelled_move_that_is_interrupted_waits_for_nobody() -> None:
    cluster, admin, a, b, c = cluster_of_four()
    admin.create_topic("t", {0: (a, b)})
    cluster.run(500)
    cluster.crash(b)
    cluster.crash(c)
    cluster.run(1500)
    admin.move({0: (a, c)})
    cluster.run_until(lambda: c in cluster.assigned())
    cluster.run(300)
    admin.move({0: (a, b)})
    interrupt(cluster, when=lambda: c not in cluster.assigned(), meanwhile=lambda: None)
    cluster.run_until(admin.has_moved)
    assert cluster.assigned() == (a, b)


def test_move_that_waits_for_a_deletion_ends_with_its_topic() -> None:
    """Somebody deletes the topic's nodes by hand."""
    cluster, admin, a, b, c = cluster_of_four()
    admin.create_topic("t", {0: (a,)})
    cluster.run(500)
    cluster.crash(c)
    cluster.run(1500)
    admin.move({0: (b, c)})
    cluster.run_until(lambda: cluster.replica(b) is not None)
    cluster.run(500)
    cluster.pause(b)
    admin.move({0: (a, c)})
    cluster.run(100)
    admin.move({0: (b, c)})  # b has not answered yet
    cluster.run(100)
    admin.do(Delete(path=paths.topic("t")))
    below = f"{paths.topic('t')}/partitions"
    for path in (f"{below}/0/state", f"{below}/0", below, paths.topic("t")):
        admin.do(Delete(path=path))
    cluster.run(100)
    cluster.resume(b)
    cluster.run_until(admin.has_moved)
    assert admin.children(paths.TOPICS) == ()


def test_topic_is_not_gone_before_a_replica_that_has_left_it_is_deleted() -> None:
    """Else its log would be taken for one of the next topic of that name."""
    cluster, admin, a, b, c = cluster_of_four()
    admin.create_topic("t", {0: (a, b)})
    cluster.run(500)
    cluster.crash(b)
    cluster.run(1500)
    admin.move({0: (a, c)})
    cluster.run_until(admin.has_moved)
    admin.do(Create(path=f"{paths.DELETE_TOPICS}/t"))
    cluster.run(1000)
    assert admin.children(paths.TOPICS) == ("t",)
    cluster.restart(b)
    cluster.run_until(lambda: admin.children(paths.TOPICS) == ())
    assert not cluster.has_log(b)


def test_leader_hears_who_is_assigned_when_its_partition_had_contracted_too_early() -> None:
    """The controller dies between ISR and assignment, and nobody asks for the move any more."""
    stage = DirectedZooKeeper(Production(), design="zk-kip497", brokers=4)
    controller = stage.controller
    assert controller is not None
    a, b, _ = stage.others(controller)
    stage.create(a, b)
    broken: list[Operation] = []

    def look(node: int, operation: Operation) -> None:
        if node == controller and writes_topic(operation):
            broken.append(operation)
            if len(broken) > 1:  # the first is that of the expansion
                stage.cluster.cut_session(node)

    stage.asked = look
    wanted = Reassignments(replicas={(TOPIC, 0): (a,)})
    stage.ask_zookeeper(Create(path=paths.REASSIGN_PARTITIONS, data=wanted.encode()))
    stage.until(lambda: len(broken) > 1, "the assignment is to be written", bound="L-ISR")
    stage.cluster.run(20)  # the leader hears of its ISR
    stage.cluster.crash(controller)
    assert replicas_of(stage) == (a, b)
    stage.ask_zookeeper(Delete(path=paths.REASSIGN_PARTITIONS))

    def is_in_sync() -> bool:
        data = stage.cluster.ensemble.data(state_path(ZK_KIP497, of(TOPIC)))
        return data is not None and set(PartitionState.decode(data).isr) == {a, b}

    stage.until(is_in_sync, "b is in sync again", bound="L-ISR")
    assert topic_of(stage) == TopicAssignment(partitions={0: (a, b)}), "and it does not move"
    stage.finish()


def holds_stops_of(broker: int) -> Callable[[Message], bool]:
    return lambda message: isinstance(message.body, StopReplicaRequest) and message.target == broker


def test_replica_that_is_being_deleted_is_not_begun_anew() -> None:
    cluster, admin, a, b, c = cluster_of_four()
    admin.create_topic("t", {0: (a,)})
    cluster.run(500)
    cluster.crash(c)
    cluster.run(1500)
    admin.move({0: (b, c)})
    cluster.run_until(lambda: cluster.replica(b) is not None)
    cluster.run(500)
    cluster.network.takes = holds_stops_of(b)
    admin.move({0: (a, c)})
    cluster.run(300)
    admin.move({0: (b, c)})
    cluster.run(300)
    assert b not in cluster.assigned()
    cluster.network.takes = nothing
    cluster.run_until(lambda: b in cluster.assigned())
    cluster.restart(c)
    cluster.run_until(admin.has_moved)
    admin.do(Create(path=f"{paths.DELETE_TOPICS}/t"))
    cluster.run_until(lambda: admin.children(paths.TOPICS) == ())


def test_partition_that_has_contracted_is_not_said_to_move() -> None:
    """It waits for a broker that deletes, and another partition of the topic begins to move."""
    cluster, admin, a, b, c = cluster_of_four()
    admin.create_topic("t", {0: (a, b), 1: (b,)})
    cluster.run(500)
    cluster.network.takes = holds_stops_of(a)
    admin.move({0: (b, c)})
    cluster.run_until(lambda: cluster.assigned() == (b, c))
    cluster.run(300)
    admin.move({0: (b, c), 1: (c,)})
    cluster.run_until(lambda: c in cluster.assigned(1))
    data = cluster.ensemble.data(paths.topic("t"))
    assert data is not None
    assert 0 not in TopicAssignment.decode(data).removing
    cluster.network.takes = nothing
    cluster.run_until(admin.has_moved)
