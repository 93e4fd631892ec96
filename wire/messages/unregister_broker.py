"""UnregisterBroker (API key 64), as Kafka's message of version 0 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "UnregisterBrokerRequest",
    "UnregisterBrokerResponse",
]


class UnregisterBrokerRequest(Message):
    broker_id: int


class UnregisterBrokerResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
