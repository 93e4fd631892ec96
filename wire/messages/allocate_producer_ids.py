"""AllocateProducerIds (API key 67), as Kafka's message of version 0 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "AllocateProducerIdsRequest",
    "AllocateProducerIdsResponse",
]


class AllocateProducerIdsRequest(Message):
    broker_id: int
    broker_epoch: int = -1


class AllocateProducerIdsResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    producer_id_start: int = -1
    producer_id_len: int = 0
