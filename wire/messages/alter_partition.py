"""AlterPartition (API key 56), as Kafka's message of version 3 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "BrokerState",
    "PartitionData",
    "PartitionDataResult",
    "TopicData",
    "TopicDataResult",
]


class BrokerState(Message):
    broker_id: int
    broker_epoch: int = -1


class PartitionData(Message):
    partition_index: int
    leader_epoch: int
    new_isr_with_epochs: tuple[BrokerState, ...]
    leader_recovery_state: int = 0  # 1: recovering from an unclean election
    partition_epoch: int


class TopicData(Message):
    topic_id: UUID
    partitions: tuple[PartitionData, ...]


class AlterPartitionRequest(Message):
    broker_id: int
    broker_epoch: int = -1
    topics: tuple[TopicData, ...]


class PartitionDataResult(Message):
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    leader_id: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = -1


class TopicDataResult(Message):
    topic_id: UUID
    partitions: tuple[PartitionDataResult, ...]


class AlterPartitionResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    topics: tuple[TopicDataResult, ...] = ()
