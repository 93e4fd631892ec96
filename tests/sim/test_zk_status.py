"""`quorumlab status` says of a ZooKeeper design what ZooKeeper says, whichever node was restarted.

The page that it asks for is built here from a simulated cluster, as `quorumlab.pages` builds it.
"""

from typing import Any

import pytest

from broker.replica_counts import broker_counts
from broker.zk.view import ReadClusterRequest, ReadClusterResponse
from controller.zk.zk_metadata import children, read_assignments, read_states
from quorum.zookeeper.zk_procedures import Procedure
from quorumlab.cluster_status import in_order_of_knowledge
from quorumlab.pages import metadata_of
from tests.sim.zookeeper import Administrator, Producer, begin
from wire.zk import paths
from wire.zk.designs import DESIGNS

_BOTH_ROUTINGS = ("zk-v3", "zk-redesign")
_COUNTS = ("partitions", "under_replicated_partitions", "offline_partitions")


class Observed:
    """A cluster, and what is said of it once it is at rest."""

    def __init__(self, design: str) -> None:
        self.cluster = begin(DESIGNS[design], lag_time_max_ms=500)
        self.administrator = Administrator(self.cluster)
        self._client = Producer(self.cluster)

    def rest(self) -> None:
        self.cluster.run(1500)

    @property
    def truth(self) -> tuple[int, ...]:
        design = self.cluster.options.design
        names = self._read(children(paths.TOPICS))
        assignments = self._read(read_assignments(design, names))
        states = self._read(read_states(design, assignments))
        partitions = states.values()
        return (
            sum(map(len, assignments.values())),
            sum(len(each.isr) < len(each.replicas) for each in partitions),
            sum(each.leader < 0 for each in partitions),
        )

    def _read(self, steps: Procedure[Any]) -> Any:
        try:
            asked = next(steps)
            while True:
                asked = steps.send(tuple(map(self.administrator.do, asked)))
        except StopIteration as stop:
            return stop.value

    @property
    def status(self) -> tuple[int, ...]:
        cluster = self.cluster
        quorum = {"design": cluster.options.design.name}
        answers = {
            node.broker.config.node_id: {
                "quorum": quorum,
                "metadata": metadata_of(node.broker.cluster.image),
            }
            for node in cluster.up
        }
        node_id = in_order_of_knowledge(answers, cluster.active_controller)[0]
        told = self._client.ask(node_id, ReadClusterRequest())
        cluster.run_until(lambda: bool(told))
        (answer,) = told
        assert isinstance(answer, ReadClusterResponse)
        assert answer.read is not None
        page = metadata_of(answer.read.image)
        return tuple(page[name] for name in _COUNTS)

    @property
    def counted_by_leaders(self) -> int:
        """What their metrics say, added up as boards do."""
        brokers = [node.broker for node in self.cluster.up]
        counts = [broker_counts(each.replicas, each.cluster.image) for each in brokers]
        return sum(each["UnderReplicatedPartitions"] for each in counts)


@pytest.mark.parametrize(
    "design",
    # What the others have of their own here, these two have as well.
    [
        pytest.param(name, marks=[pytest.mark.long] * (name not in _BOTH_ROUTINGS))
        for name in DESIGNS
    ],
)
def test_status_is_what_zookeeper_says_after_restarts(design: str) -> None:
    observed = Observed(design)
    cluster = observed.cluster
    for topic in ("t", "u"):
        observed.administrator.create_topic(topic, {0: (1, 2, 3), 1: (2, 3, 1)})
    observed.rest()
    assert observed.status == observed.truth == (4, 0, 0)
    for act in (cluster.shut_down, cluster.restart):
        for node_id in cluster.options.brokers:
            act(node_id)
            cluster.run(400)
    observed.rest()
    assert observed.status == observed.truth
    victim = cluster.active_controller or 1
    cluster.crash(victim)
    observed.rest()
    assert observed.status == observed.truth
    assert observed.counted_by_leaders == observed.truth[1]
    cluster.restart(victim)
    observed.rest()
    assert observed.status == observed.truth
    assert observed.truth[::2] == (4, 0)
