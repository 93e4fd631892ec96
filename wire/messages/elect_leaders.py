"""ElectLeaders (API key 43), as Kafka's message of version 2 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "ElectLeadersRequest",
    "ElectLeadersResponse",
    "PartitionResult",
    "ReplicaElectionResult",
    "TopicPartitions",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitions:
    topic: str
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersRequest:
    election_type: int = 0  # 0: the preferred leader; 1: any leader, even from outside the ISR
    topic_partitions: tuple[TopicPartitions, ...] | None = None  # None: all
    timeout_ms: int = 60000


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult:
    partition_id: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaElectionResult:
    topic: str
    partition_result: tuple[PartitionResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()
