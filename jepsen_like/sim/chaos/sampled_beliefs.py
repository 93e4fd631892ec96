"""What every node believes of the workload's partitions, sampled while a run goes on.

As on real processes (`jepsen_like.real.runs.observers`): by what a node has applied of the
metadata, and how far its own replicas have come, written when it differs from the sample before. A
node that is down or stands still is not seen; one that was started again is another observer.
"""

from collections.abc import Mapping, Sequence

from broker.broker import Broker
from broker.replica_counts import replica_marks
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import PartitionState
from controller.metadata.topics import TopicImage
from jepsen_like.histories.history import Value, key_of
from jepsen_like.sim.open_history import Recording
from jepsen_like.sim.world.assembly import AnyAssembly
from jepsen_like.workloads.workload import comparable, observation
from wire.zk.designs import Design

__all__ = ["Observers"]

_Decided = tuple[TopicImage, int, PartitionState]


class Observers:
    """Where nodes have no partitions, nothing is seen."""

    def __init__(
        self,
        stage: AnyAssembly,
        topics: Sequence[str],
        recording: Recording,
        *,
        interval_ms: int,
        design: Design | None = None,
    ) -> None:
        self._stage = stage
        self._topics = topics
        self._recording = recording
        self._interval_ms = interval_ms
        self._design = design
        self._last: dict[int, Mapping[str, Value]] = {}  # by node
        self._decided: dict[int, tuple[MetadataImage, Sequence[_Decided]]] = {}  # by node

    def start(self) -> None:
        if self._topics:
            self._stage.world.after(self._interval_ms * 1000, self._look)

    def _look(self) -> None:
        for node, host in self._stage.world.nodes.items():
            image = None if host.is_paused else self._stage.image(node)
            decided = () if image is None else self._decided_in(image, node)
            states = _states(decided, self._stage.broker(node)) if decided else {}
            seen = comparable(states, self._design)
            if seen and seen != self._last.get(node):
                self._last[node] = seen
                incarnation = host.incarnation
                self._recording.enter(observation(node, seen, incarnation=incarnation))
        self._stage.world.after(self._interval_ms * 1000, self._look)

    def _decided_in(self, image: MetadataImage, node: int) -> Sequence[_Decided]:
        """The partitions of which something is. Nearly always the image is that of last time."""
        before = self._decided.get(node)
        if before is not None and before[0] is image:
            return before[1]
        found = [
            (topic, index, state)
            for name in self._topics
            if (topic := image.topic(name)) is not None
            for index, state in image.partitions_of(topic.id)
            if state.leader >= 0 or state.isr or state.partition_epoch
        ]
        self._decided[node] = image, found
        return found


def _states(decided: Sequence[_Decided], broker: Broker | None) -> dict[str, Value]:
    return {
        key_of(topic.name, index): [
            state.leader,
            state.leader_epoch,
            state.partition_epoch,
            list(state.isr),
            {
                "replicas": list(state.replicas),
                "elr": list(state.eligible_leader_replicas),
                # A broker says how far its own replica has come; a controller has none.
                **(
                    replica_marks(broker.replicas, topic, index, state.leader_epoch)
                    if broker
                    else {}
                ),
            },
        ]
        for topic, index, state in decided
    }
