"""DescribeTopicPartitions (API key 75), as Kafka's message of version 0 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message
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


class TopicRequest(Message):
    name: str


class Cursor(Message):
    topic_name: str
    partition_index: int


class DescribeTopicPartitionsRequest(Message):
    topics: tuple[TopicRequest, ...]
    response_partition_limit: int = 2000
    cursor: Cursor | None = None  # where to go on: the `next_cursor` of the last answer


class DescribeTopicPartitionsResponsePartition(Message):
    error_code: ErrorCode = ErrorCode.NONE
    partition_index: int
    leader_id: int = -1
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    offline_replicas: tuple[int, ...] = ()


class DescribeTopicPartitionsResponseTopic(Message):
    error_code: ErrorCode = ErrorCode.NONE
    name: str | None = None
    topic_id: UUID = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = ()
    topic_authorized_operations: int = -2147483648


class CursorResult(Message):
    topic_name: str
    partition_index: int


class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: int = 0
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = ()
    next_cursor: CursorResult | None = None
