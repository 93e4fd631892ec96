"""FetchSnapshot (API key 59), as Kafka's message of version 1 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message
from wire.messages.endpoints import NodeEndpoint
from wire.primitives import INT32_MAX, ZERO_UUID

__all__ = [
    "FetchSnapshotRequest",
    "FetchSnapshotResponse",
    "LeaderIdAndEpoch",
    "PartitionSnapshot",
    "PartitionSnapshotResult",
    "SnapshotId",
    "SnapshotIdResult",
    "TopicSnapshot",
    "TopicSnapshotResult",
]


class SnapshotId(Message):
    end_offset: int
    epoch: int


class PartitionSnapshot(Message):
    partition: int
    current_leader_epoch: int
    snapshot_id: SnapshotId
    position: int
    replica_directory_id: UUID = ZERO_UUID


class TopicSnapshot(Message):
    name: str
    partitions: tuple[PartitionSnapshot, ...]


class FetchSnapshotRequest(Message):
    cluster_id: str | None = None
    replica_id: int = -1
    max_bytes: int = INT32_MAX
    topics: tuple[TopicSnapshot, ...]


class SnapshotIdResult(Message):
    end_offset: int = -1
    epoch: int = -1


class LeaderIdAndEpoch(Message):
    leader_id: int = 0
    leader_epoch: int = 0


class PartitionSnapshotResult(Message):
    index: int
    error_code: ErrorCode = ErrorCode.NONE
    snapshot_id: SnapshotIdResult = SnapshotIdResult()
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    size: int = 0
    position: int = 0
    unaligned_records: bytes = b""  # may cut a batch


class TopicSnapshotResult(Message):
    name: str
    partitions: tuple[PartitionSnapshotResult, ...]


class FetchSnapshotResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    topics: tuple[TopicSnapshotResult, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
