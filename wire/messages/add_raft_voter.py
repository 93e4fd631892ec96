"""AddRaftVoter (API key 80), as Kafka's message of version 1 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message
from wire.messages.endpoints import Listener

__all__ = ["AddRaftVoterRequest", "AddRaftVoterResponse"]


class AddRaftVoterRequest(Message):
    cluster_id: str | None = None
    timeout_ms: int
    voter_id: int
    voter_directory_id: UUID
    listeners: tuple[Listener, ...]
    ack_when_committed: bool = True  # False: answer as soon as the leader has written it


class AddRaftVoterResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
