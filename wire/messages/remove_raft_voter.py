"""RemoveRaftVoter (API key 81), as Kafka's message of version 0 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message

__all__ = ["RemoveRaftVoterRequest", "RemoveRaftVoterResponse"]


class RemoveRaftVoterRequest(Message):
    cluster_id: str | None = None
    voter_id: int
    voter_directory_id: UUID


class RemoveRaftVoterResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
