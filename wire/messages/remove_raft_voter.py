"""RemoveRaftVoter (API key 81), as Kafka's message of version 0 has it."""

from dataclasses import dataclass
from uuid import UUID

from wire.errors import ErrorCode

__all__ = ["RemoveRaftVoterRequest", "RemoveRaftVoterResponse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRaftVoterRequest:
    cluster_id: str | None = None
    voter_id: int
    voter_directory_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRaftVoterResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
