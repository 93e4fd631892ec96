"""AlterPartition (API key 56), as Kafka's message of version 3 has it."""

from dataclasses import dataclass
from uuid import UUID

from wire.errors import ErrorCode

__all__ = [
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "BrokerState",
    "PartitionData",
    "PartitionDataResult",
    "TopicData",
    "TopicDataResult",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    broker_id: int
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionData:
    partition_index: int
    leader_epoch: int
    new_isr_with_epochs: tuple[BrokerState, ...]
    leader_recovery_state: int = 0  # 1: recovering from an unclean election
    partition_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicData:
    topic_id: UUID
    partitions: tuple[PartitionData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionRequest:
    broker_id: int
    broker_epoch: int = -1
    topics: tuple[TopicData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDataResult:
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    leader_id: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDataResult:
    topic_id: UUID
    partitions: tuple[PartitionDataResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    topics: tuple[TopicDataResult, ...] = ()
