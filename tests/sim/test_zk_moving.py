"""Reassignments of zk-redesign that lose their connection to ZooKeeper on the way."""

from jepsen_like.scenarios.stage.story import Production
from jepsen_like.scenarios.zookeeper.directed_zookeeper import DirectedZooKeeper
from jepsen_like.sim.assemblies.cluster.acknowledged import TOPIC
from wire.zk import paths
from wire.zk.session import Create, GetData, Operation, SetData
from wire.zk.znodes import Reassignments, TopicAssignment


def replicas_of(stage: DirectedZooKeeper) -> tuple[int, ...]:
    found = stage.cluster.ensemble.tree.read(GetData(path=paths.topic(TOPIC)))
    return TopicAssignment.decode(getattr(found, "data", b"")).partitions[0]


def test_expansion_that_begins_anew_goes_on() -> None:
    """The connection breaks when the new assignment is written: the event is taken up again."""
    stage = DirectedZooKeeper(Production(), design="zk-redesign", brokers=4)
    controller = stage.controller
    a, b, c = stage.others(controller)
    stage.create(a, b)
    broken: list[Operation] = []

    def look(node: int, operation: Operation) -> None:
        writes = isinstance(operation, SetData) and operation.path == paths.topic(TOPIC)
        if writes and node == controller and len(broken) < 2:
            broken.append(operation)
            stage.cluster.ensemble.hang_up(stage.cluster.clients[node].session_id)

    stage.asked = look
    wanted = Reassignments(replicas={(TOPIC, 0): (a, c)})
    stage.ask_zookeeper(Create(path=paths.REASSIGN_PARTITIONS, data=wanted.encode()))
    stage.until(lambda: replicas_of(stage) == (a, c), "c has taken the place of b", bound="L-ISR")
    assert len(broken) == 2
    stage.finish()
