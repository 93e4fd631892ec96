"""Where administrators of `zk-redesign` and `zk-kip497` write what they want: Kafka's own paths.

Source: seed 001, "Protocols".
"""

from collections.abc import Iterator, Mapping, Sequence

from controller.metadata.image import MetadataImage
from controller.zk.asked_nodes import grown, readable, write_over
from quorum.zookeeper.zk_procedures import Procedure
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.session import Create, Operation
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

    def removed(self, names: Sequence[str], image: MetadataImage) -> Sequence[TopicPartition]:
        return ()

    def add_partitions(self, name: str, new: Mapping[int, tuple[int, ...]]) -> Procedure[bool]:
        return (yield from grown(name, new))

    def reassign(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Procedure[bool]:
        """Beside what others ask for, and the controller has not seen yet."""
        wanted = {(of.topic, of.partition): each for of, each in targets.items()}

        def after(data: bytes | None) -> bytes:
            before = readable(data, Reassignments.decode)
            listed = {} if before is None else before.replicas
            return Reassignments(replicas={**listed, **wanted}).encode()

        return (yield from write_over(paths.REASSIGN_PARTITIONS, after))
