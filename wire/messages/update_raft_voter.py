"""UpdateRaftVoter (API key 82), as Kafka's message of version 0 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message
from wire.messages.endpoints import Listener

__all__ = [
    "CurrentLeader",
    "KRaftVersionFeature",
    "UpdateRaftVoterRequest",
    "UpdateRaftVoterResponse",
]


class KRaftVersionFeature(Message):
    min_supported_version: int
    max_supported_version: int


class UpdateRaftVoterRequest(Message):
    cluster_id: str | None = None
    current_leader_epoch: int
    voter_id: int
    voter_directory_id: UUID
    listeners: tuple[Listener, ...]
    k_raft_version_feature: KRaftVersionFeature


class CurrentLeader(Message):
    leader_id: int = -1
    leader_epoch: int = -1
    host: str = ""
    port: int = 0


class UpdateRaftVoterResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    current_leader: CurrentLeader = CurrentLeader()
