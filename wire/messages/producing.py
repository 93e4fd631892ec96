"""Records of producers, and the allocation of producer ids."""

from uuid import UUID

from wire.message import Message
from wire.messages.endpoints import (
    ExplainedOutcome,
    LeaderIdAndEpoch,
    NodeEndpoint,
    Throttled,
    ThrottledOutcome,
)
from wire.primitives import ZERO_UUID


class PartitionProduceData(Message):
    index: int
    records: bytes | None = None


class TopicProduceData(Message):
    name: str = ""  # versions below 13 name the topic, later ones give its id
    topic_id: UUID = ZERO_UUID
    partition_data: tuple[PartitionProduceData, ...]


class ProduceRequest(Message):
    transactional_id: str | None = None
    acks: int
    timeout_ms: int
    topic_data: tuple[TopicProduceData, ...]


class BatchIndexAndErrorMessage(Message):
    batch_index: int
    batch_index_error_message: str | None = None


class PartitionProduceResponse(ExplainedOutcome):
    index: int
    base_offset: int = -1
    log_append_time_ms: int = -1  # -1: the timestamps are the producer's
    log_start_offset: int = -1
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = ()
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()


class TopicProduceResponse(Message):
    name: str = ""
    topic_id: UUID = ZERO_UUID
    partition_responses: tuple[PartitionProduceResponse, ...]


class ProduceResponse(Throttled):
    responses: tuple[TopicProduceResponse, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()


class InitProducerIdRequest(Message):
    transactional_id: str | None = None
    transaction_timeout_ms: int = -1
    producer_id: int = -1
    producer_epoch: int = -1


class InitProducerIdResponse(ThrottledOutcome):
    producer_id: int = -1
    producer_epoch: int = -1


class AllocateProducerIdsRequest(Message):
    broker_id: int
    broker_epoch: int = -1


class AllocateProducerIdsResponse(ThrottledOutcome):
    producer_id_start: int = -1
    producer_id_len: int = 0
