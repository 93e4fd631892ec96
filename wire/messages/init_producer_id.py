"""InitProducerId (API key 22), as Kafka's message of version 5 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "InitProducerIdRequest",
    "InitProducerIdResponse",
]


class InitProducerIdRequest(Message):
    transactional_id: str | None = None
    transaction_timeout_ms: int = -1
    producer_id: int = -1
    producer_epoch: int = -1


class InitProducerIdResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    producer_id: int = -1
    producer_epoch: int = -1
