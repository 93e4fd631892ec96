"""Payloads for which the documents give contents, but no form: ours, in the manner of the others.

`zk-v3`: what lies in the nodes of single partitions under `/admin`. `zk-v1` and `zk-v2`: leader,
ISR and replicas of a partition, and the state changes that a leader sends to a broker. `zk-v1` has
no epochs: they are NO_EPOCH there, and not written.

Source: seed 000, paths 5 and 6; seed 002; the place of the epoch of `zk-v2` is reconstructed.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Self

from wire.zk.json_fields import Fields, Json, compact, integers

__all__ = [
    "NO_EPOCH",
    "PartitionIsr",
    "PartitionLeader",
    "ReplicaList",
    "StateChange",
    "StateChangeKind",
]

NO_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaList:
    """The brokers that a partition is assigned to, or shall be; the first is preferred."""

    replicas: tuple[int, ...]

    def encode(self) -> bytes:
        return compact({"version": 1, "replicas": integers(self.replicas)})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        return cls(replicas=Fields.of(data).integers("replicas"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLeader:
    """The ephemeral node of whoever won."""

    leader: int
    leader_epoch: int = NO_EPOCH

    def encode(self) -> bytes:
        return compact({"version": 1, "leader": self.leader, **_epoch(self.leader_epoch)})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = Fields.of(data)
        return cls(
            leader=fields.integer("leader"),
            leader_epoch=fields.integer("leader_epoch", default=NO_EPOCH),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionIsr:
    """The in-sync replicas, and the epoch of the leader that wrote them."""

    isr: tuple[int, ...]
    leader_epoch: int = NO_EPOCH

    def encode(self) -> bytes:
        return compact({"version": 1, "isr": integers(self.isr), **_epoch(self.leader_epoch)})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = Fields.of(data)
        return cls(
            isr=fields.integers("isr"),
            leader_epoch=fields.integer("leader_epoch", default=NO_EPOCH),
        )


class StateChangeKind(Enum):
    START_REPLICA = "start-replica"
    CLOSE_REPLICA = "close-replica"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """One request in the queue of a broker."""

    kind: StateChangeKind
    topic: str
    partition: int
    leader_epoch: int

    def encode(self) -> bytes:
        return compact(
            {
                "version": 1,
                "request": self.kind.value,
                "topic": self.topic,
                "partition": self.partition,
                "leader_epoch": self.leader_epoch,
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = Fields.of(data)
        return cls(
            kind=fields.checked("request", StateChangeKind, fields.text("request")),
            topic=fields.text("topic"),
            partition=fields.integer("partition"),
            leader_epoch=fields.integer("leader_epoch"),
        )


def _epoch(leader_epoch: int) -> dict[str, Json]:
    return {} if leader_epoch == NO_EPOCH else {"leader_epoch": leader_epoch}
