"""FindCoordinator (API key 10), as Kafka's message of version 6 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "Coordinator",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorRequest:
    key_type: int = 0
    coordinator_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    key: str
    node_id: int
    host: str
    port: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorResponse:
    throttle_time_ms: int = 0
    coordinators: tuple[Coordinator, ...]
