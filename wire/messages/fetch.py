"""Fetch (API key 1), as Kafka's message of version 18 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message
from wire.messages.endpoints import NodeEndpoint
from wire.primitives import INT32_MAX, INT64_MAX, ZERO_UUID

__all__ = [
    "AbortedTransaction",
    "EpochEndOffset",
    "FetchPartition",
    "FetchRequest",
    "FetchResponse",
    "FetchTopic",
    "FetchableTopicResponse",
    "ForgottenTopic",
    "LeaderIdAndEpoch",
    "PartitionData",
    "ReplicaState",
    "SnapshotId",
]


class ReplicaState(Message):
    replica_id: int = -1
    replica_epoch: int = -1


class FetchPartition(Message):
    partition: int
    current_leader_epoch: int = -1
    fetch_offset: int
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: UUID = ZERO_UUID
    high_watermark: int = INT64_MAX  # what the replica knows; this: it does not say


class FetchTopic(Message):
    topic: str = ""  # versions below 13 name the topic, later ones give its id
    topic_id: UUID = ZERO_UUID
    partitions: tuple[FetchPartition, ...]


class ForgottenTopic(Message):
    topic: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[int, ...] = ()


class FetchRequest(Message):
    cluster_id: str | None = None
    replica_state: ReplicaState = ReplicaState()
    max_wait_ms: int
    min_bytes: int = 0
    max_bytes: int = INT32_MAX
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: tuple[ForgottenTopic, ...] = ()
    rack_id: str = ""


class EpochEndOffset(Message):
    epoch: int = -1
    end_offset: int = -1


class LeaderIdAndEpoch(Message):
    leader_id: int = -1
    leader_epoch: int = -1


class SnapshotId(Message):
    end_offset: int = -1
    epoch: int = -1


class AbortedTransaction(Message):
    producer_id: int
    first_offset: int


class PartitionData(Message):
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset = EpochEndOffset()
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    snapshot_id: SnapshotId = SnapshotId()
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None
    preferred_read_replica: int = -1
    records: bytes | None = None


class FetchableTopicResponse(Message):
    topic: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[PartitionData, ...]


class FetchResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    session_id: int = 0
    responses: tuple[FetchableTopicResponse, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
