"""Where administrators of `zk-v1` and `zk-v2` write what they want: topics into their nodes, and
what is to move under `/brokers/partitions_reassigned`. What is to go is moved to nobody.

Source: seed 002, "if (p.RAR is empty)"; that topics are created and grow by their nodes is
reconstructed.
"""

from collections.abc import Iterator, Mapping, Sequence

from controller.metadata.image import MetadataImage
from controller.zk.asked_nodes import grown, list_replicas
from quorum.zookeeper.zk_procedures import Procedure
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.session import Create, Delete, Operation
from wire.zk.znodes import TopicAssignment

__all__ = ["V2Writes"]


class V2Writes:
    def create_topics(
        self, created: Mapping[str, Mapping[int, tuple[int, ...]]]
    ) -> Iterator[Operation]:
        for name, partitions in created.items():
            data = TopicAssignment(partitions=partitions).encode()
            yield Create(path=paths.topic(name), data=data)

    def delete_topics(self, names: Sequence[str], image: MetadataImage) -> Iterator[Operation]:
        for name in names:
            yield Delete(path=paths.config("topics", name))

    def removed(self, names: Sequence[str], image: MetadataImage) -> Iterator[TopicPartition]:
        for name in names:
            for index, _ in image.topics.by_name[name].partitions():
                yield TopicPartition(name, index)

    def add_partitions(self, name: str, new: Mapping[int, tuple[int, ...]]) -> Procedure[bool]:
        return (yield from grown(name, new))

    def reassign(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Procedure[bool]:
        return (yield from list_replicas(paths.V2_PARTITIONS_REASSIGNED, targets))
