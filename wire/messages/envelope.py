"""Envelope (API key 58), as Kafka's message of version 0 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "EnvelopeRequest",
    "EnvelopeResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeRequest:
    request_data: bytes  # the inner frame: header and body
    request_principal: bytes | None = None
    client_host_address: bytes  # 4 or 16 bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeResponse:
    response_data: bytes | None = None
    error_code: ErrorCode = ErrorCode.NONE
