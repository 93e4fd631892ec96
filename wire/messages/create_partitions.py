"""CreatePartitions (API key 37), as Kafka's message of version 3 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "CreatePartitionsAssignment",
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
    "CreatePartitionsTopic",
    "CreatePartitionsTopicResult",
]


class CreatePartitionsAssignment(Message):
    broker_ids: tuple[int, ...] = ()


class CreatePartitionsTopic(Message):
    name: str
    count: int  # the new total
    assignments: tuple[CreatePartitionsAssignment, ...] | None = None


class CreatePartitionsRequest(Message):
    topics: tuple[CreatePartitionsTopic, ...]
    timeout_ms: int = 60000
    validate_only: bool = False


class CreatePartitionsTopicResult(Message):
    name: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class CreatePartitionsResponse(Message):
    throttle_time_ms: int = 0
    results: tuple[CreatePartitionsTopicResult, ...] = ()
