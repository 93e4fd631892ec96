"""UnregisterBroker (API key 64), as Kafka's message of version 0 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "UnregisterBrokerRequest",
    "UnregisterBrokerResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRequest:
    broker_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
