"""DeleteTopics (API key 20), as Kafka's message of version 6 has it."""

from dataclasses import dataclass
from uuid import UUID

from wire.errors import ErrorCode

__all__ = [
    "DeletableTopicResult",
    "DeleteTopicState",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicState:
    name: str | None = None
    topic_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsRequest:
    topics: tuple[DeleteTopicState, ...]
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletableTopicResult:
    name: str | None
    topic_id: UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsResponse:
    throttle_time_ms: int = 0
    responses: tuple[DeletableTopicResult, ...]
