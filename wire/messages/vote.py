"""Vote (API key 52), as Kafka's message of version 2 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message
from wire.messages.endpoints import NodeEndpoint
from wire.primitives import ZERO_UUID

__all__ = [
    "PartitionData",
    "PartitionDataResult",
    "TopicData",
    "TopicDataResult",
    "VoteRequest",
    "VoteResponse",
]


class PartitionData(Message):
    partition_index: int
    replica_epoch: int
    replica_id: int
    replica_directory_id: UUID = ZERO_UUID
    voter_directory_id: UUID = ZERO_UUID
    last_offset_epoch: int
    last_offset: int  # the log end offset, exclusive
    pre_vote: bool = False


class TopicData(Message):
    topic_name: str
    partitions: tuple[PartitionData, ...]


class VoteRequest(Message):
    cluster_id: str | None = None
    voter_id: int = -1  # whom the candidate means to ask
    topics: tuple[TopicData, ...]


class PartitionDataResult(Message):
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    leader_id: int = -1
    leader_epoch: int = -1
    vote_granted: bool = False


class TopicDataResult(Message):
    topic_name: str
    partitions: tuple[PartitionDataResult, ...]


class VoteResponse(Message):
    error_code: ErrorCode = ErrorCode.NONE
    topics: tuple[TopicDataResult, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
