"""AlterPartitionReassignments (API key 45), as Kafka's message of version 1 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse",
    "ReassignablePartition",
    "ReassignablePartitionResponse",
    "ReassignableTopic",
    "ReassignableTopicResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignablePartition:
    partition_index: int
    replicas: tuple[int, ...] | None = None  # None: cancel what is going on


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignableTopic:
    name: str
    partitions: tuple[ReassignablePartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsRequest:
    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: tuple[ReassignableTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignablePartitionResponse:
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignableTopicResponse:
    name: str
    partitions: tuple[ReassignablePartitionResponse, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    responses: tuple[ReassignableTopicResponse, ...] = ()
