"""Where administrators of `zk-redesign` and `zk-kip497` write what they want: Kafka's own paths.

Source: seed 001, "Protocols".
"""

from collections.abc import Iterator, Mapping, Sequence

from controller.metadata.image import MetadataImage
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.session import Create, Operation, SetData
from wire.zk.znodes import Reassignments, TopicAssignment

__all__ = ["KafkaWrites"]


class KafkaWrites:
    def create_topics(
        self, created: Mapping[str, Mapping[int, tuple[int, ...]]]
    ) -> Iterator[Operation]:
        for name, partitions in created.items():
            data = TopicAssignment(partitions=partitions).encode()
            yield Create(path=paths.topic(name), data=data)

    def delete_topics(self, names: Sequence[str], image: MetadataImage) -> Iterator[Operation]:
        for name in names:
            yield Create(path=f"{paths.DELETE_TOPICS}/{name}")

    def add_partitions(
        self, name: str, every: Mapping[int, tuple[int, ...]], first_new: int
    ) -> Iterator[Operation]:
        data = TopicAssignment(partitions=every).encode()
        yield SetData(path=paths.topic(name), data=data)

    def reassign(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Iterator[Operation]:
        """All that shall move, with what is moving: this replaces the node."""
        wanted = {(of.topic, of.partition): each for of, each in targets.items()}
        data = Reassignments(replicas=wanted).encode()
        yield Create(path=paths.REASSIGN_PARTITIONS)
        yield SetData(path=paths.REASSIGN_PARTITIONS, data=data)
