"""FindCoordinator (API key 10), as Kafka's message of version 6 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "Coordinator",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
]


class FindCoordinatorRequest(Message):
    key_type: int = 0  # 0 group, 1 transaction, 2 share group
    coordinator_keys: tuple[str, ...] = ()


class Coordinator(Message):
    key: str = ""  # lost before version 4, which knows one coordinator an answer
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class FindCoordinatorResponse(Message):
    throttle_time_ms: int = 0
    coordinators: tuple[Coordinator, ...] = ()
