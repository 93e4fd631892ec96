"""OffsetCommit (API key 8), as Kafka's message of version 9 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "OffsetCommitRequest",
    "OffsetCommitRequestPartition",
    "OffsetCommitRequestTopic",
    "OffsetCommitResponse",
    "OffsetCommitResponsePartition",
    "OffsetCommitResponseTopic",
]


class OffsetCommitRequestPartition(Message):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int = -1
    committed_metadata: str | None = None


class OffsetCommitRequestTopic(Message):
    name: str
    partitions: tuple[OffsetCommitRequestPartition, ...]


class OffsetCommitRequest(Message):
    group_id: str
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1  # of versions 2 to 4; -1: as the broker has it
    topics: tuple[OffsetCommitRequestTopic, ...]


class OffsetCommitResponsePartition(Message):
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE


class OffsetCommitResponseTopic(Message):
    name: str
    partitions: tuple[OffsetCommitResponsePartition, ...]


class OffsetCommitResponse(Message):
    throttle_time_ms: int = 0
    topics: tuple[OffsetCommitResponseTopic, ...] = ()
