"""DeleteTopics (API key 20), as Kafka's message of version 6 has it."""

from dataclasses import dataclass
from uuid import UUID

from wire.errors import ErrorCode
from wire.primitives import ZERO_UUID

__all__ = [
    "DeletableTopicResult",
    "DeleteTopicState",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicState:
    name: str | None = None
    topic_id: UUID = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsRequest:
    topics: tuple[DeleteTopicState, ...]
    timeout_ms: int = 60000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletableTopicResult:
    name: str | None = None
    topic_id: UUID = ZERO_UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsResponse:
    throttle_time_ms: int = 0
    responses: tuple[DeletableTopicResult, ...] = ()
