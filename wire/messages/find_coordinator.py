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
    key_type: int = 0  # 0 group, 1 transaction, 2 share group
    coordinator_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    key: str = ""  # lost before version 4, which knows one coordinator an answer
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorResponse:
    throttle_time_ms: int = 0
    coordinators: tuple[Coordinator, ...] = ()
