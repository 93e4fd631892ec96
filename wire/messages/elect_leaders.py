"""ElectLeaders (API key 43), as Kafka's message of version 2 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "ElectLeadersRequest",
    "ElectLeadersResponse",
    "PartitionResult",
    "ReplicaElectionResult",
    "TopicPartitions",
]


class TopicPartitions(Message):
    topic: str
    partitions: tuple[int, ...] = ()


class ElectLeadersRequest(Message):
    election_type: int = 0  # 0: the preferred leader; 1: any leader, even from outside the ISR
    topic_partitions: tuple[TopicPartitions, ...] | None = None  # None: all
    timeout_ms: int = 60000


class PartitionResult(Message):
    partition_id: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class ReplicaElectionResult(Message):
    topic: str
    partition_result: tuple[PartitionResult, ...]


class ElectLeadersResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()
