"""Payloads whose contents the documents give, but not their form, which is ours.

`zk-v3`: the nodes of single partitions under `/admin`. `zk-v1` and `zk-v2`: leader,
ISR and replicas of a partition, and the state changes that a leader sends to a broker. `zk-v1` has
no epochs: they are NO_EPOCH there, and not written.

Source: seed 000, paths 5 and 6; seed 002; the place of the epoch of `zk-v2` is reconstructed.
"""

from enum import Enum

from wire.zk.znodes import Znode

__all__ = [
    "NO_EPOCH",
    "PartitionIsr",
    "PartitionLeader",
    "ReplicaList",
    "StateChange",
    "StateChangeKind",
]

NO_EPOCH = -1


class ReplicaList(Znode):
    """The replicas of a partition, present or future; the first is the preferred one."""

    replicas: tuple[int, ...]


class PartitionLeader(Znode, omit_defaults=True):
    """The ephemeral node of the replica that won the election."""

    leader: int
    leader_epoch: int = NO_EPOCH


class PartitionIsr(Znode, omit_defaults=True):
    """The in-sync replicas, and the epoch of the leader that wrote them."""

    isr: tuple[int, ...]
    leader_epoch: int = NO_EPOCH


class StateChangeKind(Enum):
    START_REPLICA = "start-replica"
    CLOSE_REPLICA = "close-replica"


class StateChange(Znode, rename={"kind": "request"}):
    """One request in the queue of a broker."""

    kind: StateChangeKind
    topic: str
    partition: int
    leader_epoch: int
