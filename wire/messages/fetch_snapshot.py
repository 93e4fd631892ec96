"""FetchSnapshot (API key 59), as Kafka's message of version 1 has it."""

from dataclasses import dataclass
from uuid import UUID

from wire.errors import ErrorCode
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotId:
    end_offset: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSnapshot:
    partition: int
    current_leader_epoch: int
    snapshot_id: SnapshotId
    position: int
    replica_directory_id: UUID = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSnapshot:
    name: str
    partitions: tuple[PartitionSnapshot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotRequest:
    cluster_id: str | None = None
    replica_id: int = -1
    max_bytes: int = INT32_MAX
    topics: tuple[TopicSnapshot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotIdResult:
    end_offset: int = -1
    epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderIdAndEpoch:
    leader_id: int = 0
    leader_epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSnapshotResult:
    index: int
    error_code: ErrorCode = ErrorCode.NONE
    snapshot_id: SnapshotIdResult = SnapshotIdResult()
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    size: int = 0
    position: int = 0
    unaligned_records: bytes = b""  # may cut a batch


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSnapshotResult:
    name: str
    partitions: tuple[PartitionSnapshotResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    topics: tuple[TopicSnapshotResult, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
