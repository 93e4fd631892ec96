"""The administrators' paths of seed 000: a node for each partition, below one for its topic."""

from collections.abc import Mapping

from controller.metadata.znode_reading import calls, decoded, partitions_under
from quorum.zk_procedures import Procedure, one
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.replica_znodes import ReplicaList
from wire.zk.session import Delete, GetData, SetData
from wire.zk.znodes import TopicAssignment

__all__ = ["read_replicas", "remove", "write_assignment"]


def read_replicas(design: Design, root: str) -> Procedure[dict[TopicPartition, tuple[int, ...]]]:
    """The partitions below `root`, with the replicas that each lists; not what cannot be read."""
    named = yield from partitions_under(root)
    results = yield from calls(
        design,
        (GetData(path=paths.partition_under(root, of.topic, of.partition)) for of in named),
    )
    return {
        of: listed.replicas
        for of, result in zip(named, results, strict=True)
        if (listed := decoded(result, ReplicaList.decode)) is not None and listed.replicas
    }


def remove(root: str, of: TopicPartition) -> Procedure[None]:
    """The node of the partition, and that of its topic if it was the last."""
    yield from one(Delete(path=paths.partition_under(root, of.topic, of.partition)))
    yield from one(Delete(path=f"{root}/{of.topic}"))


def write_assignment(topic: str, partitions: Mapping[int, tuple[int, ...]]) -> Procedure[None]:
    data = TopicAssignment(partitions=partitions).encode()
    yield from one(SetData(path=paths.topic(topic), data=data))
