"""Produce (API key 0), as Kafka's message of version 13 has it."""

from dataclasses import dataclass
from uuid import UUID

from wire.errors import ErrorCode
from wire.messages.endpoints import NodeEndpoint
from wire.primitives import ZERO_UUID

__all__ = [
    "BatchIndexAndErrorMessage",
    "LeaderIdAndEpoch",
    "PartitionProduceData",
    "PartitionProduceResponse",
    "ProduceRequest",
    "ProduceResponse",
    "TopicProduceData",
    "TopicProduceResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProduceData:
    index: int
    records: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProduceData:
    name: str = ""  # versions below 13 name the topic, later ones give its id
    topic_id: UUID = ZERO_UUID
    partition_data: tuple[PartitionProduceData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRequest:
    transactional_id: str | None = None
    acks: int
    timeout_ms: int
    topic_data: tuple[TopicProduceData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchIndexAndErrorMessage:
    batch_index: int
    batch_index_error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderIdAndEpoch:
    leader_id: int = -1
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProduceResponse:
    index: int
    error_code: ErrorCode = ErrorCode.NONE
    base_offset: int = -1
    log_append_time_ms: int = -1  # -1: timestamps are the producer's
    log_start_offset: int = -1
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = ()
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProduceResponse:
    name: str = ""
    topic_id: UUID = ZERO_UUID
    partition_responses: tuple[PartitionProduceResponse, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResponse:
    responses: tuple[TopicProduceResponse, ...] = ()
    throttle_time_ms: int = 0
    node_endpoints: tuple[NodeEndpoint, ...] = ()
