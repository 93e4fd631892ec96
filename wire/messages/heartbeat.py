"""Heartbeat (API key 12), as Kafka's message of version 4 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "HeartbeatRequest",
    "HeartbeatResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRequest:
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
