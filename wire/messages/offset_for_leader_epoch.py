"""OffsetForLeaderEpoch (API key 23), as Kafka's message of version 4 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "EpochEndOffset",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
    "OffsetForLeaderPartition",
    "OffsetForLeaderTopic",
    "OffsetForLeaderTopicResult",
]


class OffsetForLeaderPartition(Message):
    partition: int
    current_leader_epoch: int = -1
    leader_epoch: int


class OffsetForLeaderTopic(Message):
    topic: str
    partitions: tuple[OffsetForLeaderPartition, ...]


class OffsetForLeaderEpochRequest(Message):
    replica_id: int = -2
    topics: tuple[OffsetForLeaderTopic, ...]


class EpochEndOffset(Message):
    error_code: ErrorCode = ErrorCode.NONE
    partition: int
    leader_epoch: int = -1
    end_offset: int = -1


class OffsetForLeaderTopicResult(Message):
    topic: str
    partitions: tuple[EpochEndOffset, ...]


class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: int = 0
    topics: tuple[OffsetForLeaderTopicResult, ...]
