"""Where administrators of `zk-v1` and `zk-v2` write what they want: topics into their nodes, and
what is to move under `/brokers/partitions_reassigned`. What is to go is moved to nobody.

Source: seed 002, "if (p.RAR is empty)"; that topics are created and grow by their nodes is
reconstructed.
"""

from collections.abc import Iterator, Mapping, Sequence

from controller.metadata.image import MetadataImage
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.replica_znodes import ReplicaList
from wire.zk.session import Create, Delete, Operation, SetData
from wire.zk.znodes import TopicAssignment

__all__ = ["V2Writes"]

_ROOT = paths.V2_PARTITIONS_REASSIGNED


class V2Writes:
    def create_topics(
        self, created: Mapping[str, Mapping[int, tuple[int, ...]]]
    ) -> Iterator[Operation]:
        for name, partitions in created.items():
            data = TopicAssignment(partitions=partitions).encode()
            yield Create(path=paths.topic(name), data=data)

    def delete_topics(self, names: Sequence[str], image: MetadataImage) -> Iterator[Operation]:
        for name in names:
            topic = image.topics.by_name[name]
            yield from _moved({TopicPartition(name, index): () for index, _ in topic.partitions()})
            yield Delete(path=paths.config("topics", name))

    def add_partitions(
        self, name: str, every: Mapping[int, tuple[int, ...]], first_new: int
    ) -> Iterator[Operation]:
        yield SetData(path=paths.topic(name), data=TopicAssignment(partitions=every).encode())

    def reassign(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Iterator[Operation]:
        yield from _moved(targets)


def _moved(targets: Mapping[TopicPartition, tuple[int, ...]]) -> Iterator[Operation]:
    """A move that is under way is replaced: leaders hear of nodes, not of their data."""
    for topic in dict.fromkeys(of.topic for of in targets):
        yield Create(path=f"{_ROOT}/{topic}")
    for of, replicas in targets.items():
        path = paths.partition_under(_ROOT, of.topic, of.partition)
        yield Delete(path=path)
        yield Create(path=path, data=ReplicaList(replicas=replicas).encode())
