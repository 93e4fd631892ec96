"""Envelope (API key 58), as Kafka's message of version 0 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "EnvelopeRequest",
    "EnvelopeResponse",
]


class EnvelopeRequest(Message):
    request_data: bytes  # the inner frame: header and body
    request_principal: bytes | None = None
    client_host_address: bytes  # 4 or 16 bytes


class EnvelopeResponse(Message):
    response_data: bytes | None = None
    error_code: ErrorCode = ErrorCode.NONE
