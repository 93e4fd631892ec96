"""DeleteTopics (API key 20), as Kafka's message of version 6 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message
from wire.primitives import ZERO_UUID

__all__ = [
    "DeletableTopicResult",
    "DeleteTopicState",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
]


class DeleteTopicState(Message):
    name: str | None = None
    topic_id: UUID = ZERO_UUID


class DeleteTopicsRequest(Message):
    topics: tuple[DeleteTopicState, ...]
    timeout_ms: int = 60000


class DeletableTopicResult(Message):
    name: str | None = None
    topic_id: UUID = ZERO_UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DeleteTopicsResponse(Message):
    throttle_time_ms: int = 0
    responses: tuple[DeletableTopicResult, ...] = ()
