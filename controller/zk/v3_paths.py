"""The administrators' paths of seed 000: a node for each partition, below one for its topic."""

from collections.abc import Mapping
from dataclasses import dataclass

from controller.metadata.znode_reading import calls, decoded, partitions_under
from quorum.zookeeper.zk_procedures import Procedure, one
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.replica_znodes import ReplicaList
from wire.zk.session import ANY_VERSION, Data, Delete, Error, Failed, GetData, SetData
from wire.zk.znodes import TopicAssignment

__all__ = ["Listed", "read_replicas", "remove", "write_assignment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    replicas: tuple[int, ...]
    version: int  # of the node that lists them


def read_replicas(design: Design, root: str) -> Procedure[dict[TopicPartition, Listed]]:
    """The partitions below `root`, with the replicas that each lists; not what cannot be read."""
    named = yield from partitions_under(root)
    results = yield from calls(
        design,
        (GetData(path=paths.partition_under(root, of.topic, of.partition)) for of in named),
    )
    return {
        of: Listed(replicas=listed.replicas, version=result.stat.version)
        for of, result in zip(named, results, strict=True)
        if isinstance(result, Data)
        and (listed := decoded(result, ReplicaList.decode)) is not None
        and listed.replicas
    }


def remove(root: str, of: TopicPartition, version: int = ANY_VERSION) -> Procedure[bool]:
    """The node of the partition, and that of its topic if it was the last. False: an administrator
    has written there since it was read."""
    path = paths.partition_under(root, of.topic, of.partition)
    removed = yield from one(Delete(path=path, version=version))
    yield from one(Delete(path=f"{root}/{of.topic}"))
    return not isinstance(removed, Failed) or removed.error is not Error.BAD_VERSION


def write_assignment(topic: str, partitions: Mapping[int, tuple[int, ...]]) -> Procedure[None]:
    data = TopicAssignment(partitions=partitions).encode()
    yield from one(SetData(path=paths.topic(topic), data=data))
