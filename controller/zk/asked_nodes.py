"""Nodes in which administrators say what they want, each written by several of them.

Written at the version that was read, and read again if somebody else was faster: nobody's wish is
overwritten unseen. Whoever takes such a node away names the version that it has read, too.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from quorum.zookeeper.zk_procedures import Procedure, one
from wire.message import replace
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.replica_znodes import ReplicaList
from wire.zk.session import Create, Created, Data, GetData, SetData, Written
from wire.zk.znodes import InvalidZnode, TopicAssignment

__all__ = ["grown", "list_replicas", "readable", "write_over"]

_T = TypeVar("_T")
_ROUNDS_MAX = 100  # of others that are always faster


def write_over(path: str, decide: Callable[[bytes | None], bytes | None]) -> Procedure[bool]:
    """What is there, or None, becomes what `decide` makes of it; of None, it is left as it is.

    False: it was not written.
    """
    for _ in range(_ROUNDS_MAX):
        found = yield from one(GetData(path=path))
        data = decide(found.data if isinstance(found, Data) else None)
        if data is None:
            return False
        if isinstance(found, Data):
            result = yield from one(SetData(path=path, data=data, version=found.stat.version))
        else:
            yield from one(Create(path=paths.parent(path)))  # it goes with its last child
            result = yield from one(Create(path=path, data=data))
        if isinstance(result, Written | Created):
            return True
    return False


def readable(data: bytes | None, decode: Callable[[bytes], _T]) -> _T | None:
    """None if there is nothing, or a person has written what nobody understands."""
    try:
        return None if data is None else decode(data)
    except InvalidZnode:
        return None


def list_replicas(root: str, replicas: Mapping[TopicPartition, tuple[int, ...]]) -> Procedure[bool]:
    """A node for each partition, below one for its topic."""
    for of, each in replicas.items():
        data = ReplicaList(replicas=each).encode()
        path = paths.partition_under(root, of.topic, of.partition)
        if not (yield from write_over(path, partial(_always, data))):
            return False
    return True


def _always(data: bytes, _before: bytes | None) -> bytes:
    return data


def grown(topic: str, new: Mapping[int, tuple[int, ...]]) -> Procedure[bool]:
    """The topic's node, with `new` partitions beside those that it has by then."""

    def after(data: bytes | None) -> bytes | None:
        assignment = readable(data, TopicAssignment.decode)
        if assignment is None:
            return None
        partitions = {**new, **assignment.partitions}
        return replace(assignment, partitions=dict(sorted(partitions.items()))).encode()

    return (yield from write_over(paths.topic(topic), after))
