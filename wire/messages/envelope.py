"""Envelope (API key 58), as Kafka's message of version 0 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "EnvelopeRequest",
    "EnvelopeResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeRequest:
    request_data: bytes
    request_principal: bytes | None
    client_host_address: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeResponse:
    response_data: bytes | None = None
    error_code: ErrorCode = ErrorCode.NONE
