"""UpdateRaftVoter (API key 82), as Kafka's message of version 0 has it."""

from dataclasses import dataclass
from uuid import UUID

from wire.errors import ErrorCode
from wire.messages.endpoints import Listener

__all__ = [
    "CurrentLeader",
    "KRaftVersionFeature",
    "UpdateRaftVoterRequest",
    "UpdateRaftVoterResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class KRaftVersionFeature:
    min_supported_version: int
    max_supported_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRaftVoterRequest:
    cluster_id: str | None = None
    current_leader_epoch: int
    voter_id: int
    voter_directory_id: UUID
    listeners: tuple[Listener, ...]
    k_raft_version_feature: KRaftVersionFeature


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentLeader:
    leader_id: int = -1
    leader_epoch: int = -1
    host: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRaftVoterResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    current_leader: CurrentLeader = CurrentLeader()
