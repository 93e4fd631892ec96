"""AlterPartitionReassignments (API key 45), as Kafka's message of version 1 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse",
    "ReassignablePartition",
    "ReassignablePartitionResponse",
    "ReassignableTopic",
    "ReassignableTopicResponse",
]


class ReassignablePartition(Message):
    partition_index: int
    replicas: tuple[int, ...] | None = None  # None: cancel what is going on


class ReassignableTopic(Message):
    name: str
    partitions: tuple[ReassignablePartition, ...]


class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: tuple[ReassignableTopic, ...]


class ReassignablePartitionResponse(Message):
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class ReassignableTopicResponse(Message):
    name: str
    partitions: tuple[ReassignablePartitionResponse, ...]


class AlterPartitionReassignmentsResponse(Message):
    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    responses: tuple[ReassignableTopicResponse, ...] = ()
