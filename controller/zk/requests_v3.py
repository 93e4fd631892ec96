"""Where administrators of `zk-v3` write what they want: the paths that seed 000 has "created by
admin". A topic is deleted by deleting its node, with what lies below it.

The seed has no path for elections: none can be asked for.
"""

from collections.abc import Iterator, Mapping, Sequence

from controller.metadata.image import MetadataImage
from controller.zk.asked_nodes import list_replicas
from quorum.zookeeper.zk_procedures import Procedure
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.session import Create, Delete, Operation
from wire.zk.znodes import TopicAssignment

__all__ = ["V3Writes"]


class V3Writes:
    def create_topics(
        self, created: Mapping[str, Mapping[int, tuple[int, ...]]]
    ) -> Iterator[Operation]:
        for name, partitions in created.items():
            data = TopicAssignment(partitions=partitions).encode()
            yield Create(path=paths.topic(name), data=data)

    def delete_topics(self, names: Sequence[str], image: MetadataImage) -> Iterator[Operation]:
        for name in names:
            topic = image.topics.by_name[name]
            for index, _ in topic.partitions():
                state = paths.partition_leader_and_isr(name, index)
                yield Delete(path=state)
                yield Delete(path=paths.parent(state))
            yield Delete(path=paths.topic(name))
            yield Delete(path=paths.config("topics", name))

    def removed(self, names: Sequence[str], image: MetadataImage) -> Sequence[TopicPartition]:
        return ()

    def add_partitions(self, name: str, new: Mapping[int, tuple[int, ...]]) -> Procedure[bool]:
        added = {TopicPartition(name, index): each for index, each in new.items()}
        return (yield from list_replicas(paths.PARTITIONS_ADD, added))

    def reassign(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Procedure[bool]:
        return (yield from list_replicas(paths.PARTITIONS_REASSIGNED, targets))
