"""ListPartitionReassignments (API key 46), as Kafka's message of version 0 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsResponse",
    "ListPartitionReassignmentsTopics",
    "OngoingPartitionReassignment",
    "OngoingTopicReassignment",
]


class ListPartitionReassignmentsTopics(Message):
    name: str
    partition_indexes: tuple[int, ...] = ()


class ListPartitionReassignmentsRequest(Message):
    timeout_ms: int = 60000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = None  # None: all


class OngoingPartitionReassignment(Message):
    partition_index: int
    replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


class OngoingTopicReassignment(Message):
    name: str
    partitions: tuple[OngoingPartitionReassignment, ...]


class ListPartitionReassignmentsResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topics: tuple[OngoingTopicReassignment, ...] = ()
