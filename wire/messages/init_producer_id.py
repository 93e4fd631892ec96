"""InitProducerId (API key 22), as Kafka's message of version 5 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "InitProducerIdRequest",
    "InitProducerIdResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdRequest:
    transactional_id: str | None = None
    transaction_timeout_ms: int = -1
    producer_id: int = -1
    producer_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    producer_id: int = -1
    producer_epoch: int = -1
