"""Replicas without a broker, under the rules of the present protocol."""

from uuid import UUID

from broker.partition.isr_rules import EligibleReplicas
from broker.partition.local_log import Moves
from broker.partition.partition import Partition
from controller.metadata.partitions import PartitionState

__all__ = ["AnyPeers", "partition_of"]

_TOPIC_ID = UUID(int=1)


class AnyPeers:
    """Every broker is active, and nobody knows of registrations."""

    def registered_epoch(self, broker_id: int) -> int | None:
        return None

    def is_active(self, broker_id: int) -> bool:
        return True


def partition_of(
    topic: str, index: int, wanted: PartitionState, *, topic_id: UUID = _TOPIC_ID
) -> Partition:
    """The replica of broker 1."""
    return Partition(
        topic=topic,
        topic_id=topic_id,
        index=index,
        node_id=1,
        wanted=wanted,
        rules=EligibleReplicas(AnyPeers(), 10_000),
        moves=Moves(),
    )
