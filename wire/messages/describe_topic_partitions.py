"""DescribeTopicPartitions (API key 75), as Kafka's message of version 0 has it."""

from dataclasses import dataclass
from uuid import UUID

from wire.errors import ErrorCode
from wire.primitives import ZERO_UUID

__all__ = [
    "Cursor",
    "CursorResult",
    "DescribeTopicPartitionsRequest",
    "DescribeTopicPartitionsResponse",
    "DescribeTopicPartitionsResponsePartition",
    "DescribeTopicPartitionsResponseTopic",
    "TopicRequest",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRequest:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    topic_name: str
    partition_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsRequest:
    topics: tuple[TopicRequest, ...]
    response_partition_limit: int = 2000
    cursor: Cursor | None = None  # where to go on: the `next_cursor` of the last answer


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponsePartition:
    error_code: ErrorCode = ErrorCode.NONE
    partition_index: int
    leader_id: int = -1
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponseTopic:
    error_code: ErrorCode = ErrorCode.NONE
    name: str | None = None
    topic_id: UUID = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = ()
    topic_authorized_operations: int = -2147483648


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorResult:
    topic_name: str
    partition_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponse:
    throttle_time_ms: int = 0
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = ()
    next_cursor: CursorResult | None = None
