"""AllocateProducerIds (API key 67), as Kafka's message of version 0 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "AllocateProducerIdsRequest",
    "AllocateProducerIdsResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIdsRequest:
    broker_id: int
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIdsResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    producer_id_start: int = -1
    producer_id_len: int = 0
