"""Topics and their partitions: create and delete, and delete their oldest records."""

from uuid import UUID

from wire.message import Message
from wire.messages.endpoints import ExplainedOutcome, Outcome, Throttled
from wire.primitives import ZERO_UUID


class CreatableReplicaAssignment(Message):
    partition_index: int
    broker_ids: tuple[int, ...] = ()


class CreatableTopicConfig(Message):
    name: str
    value: str | None = None


class CreatableTopic(Message):
    name: str
    num_partitions: int = -1  # -1: the default, or that of `assignments`
    replication_factor: int = -1
    assignments: tuple[CreatableReplicaAssignment, ...] = ()
    configs: tuple[CreatableTopicConfig, ...] = ()


class CreateTopicsRequest(Message):
    topics: tuple[CreatableTopic, ...]
    timeout_ms: int = 60_000
    validate_only: bool = False


class CreatableTopicConfigs(Message):
    name: str
    value: str | None = None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


class CreatableTopicResult(ExplainedOutcome):
    name: str
    topic_id: UUID = ZERO_UUID
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: tuple[CreatableTopicConfigs, ...] | None = ()


class CreateTopicsResponse(Throttled):
    topics: tuple[CreatableTopicResult, ...] = ()


class CreatePartitionsAssignment(Message):
    broker_ids: tuple[int, ...] = ()


class CreatePartitionsTopic(Message):
    name: str
    count: int  # the new total
    assignments: tuple[CreatePartitionsAssignment, ...] | None = None


class CreatePartitionsRequest(Message):
    topics: tuple[CreatePartitionsTopic, ...]
    timeout_ms: int = 60_000
    validate_only: bool = False


class CreatePartitionsTopicResult(ExplainedOutcome):
    name: str


class CreatePartitionsResponse(Throttled):
    results: tuple[CreatePartitionsTopicResult, ...] = ()


class DeleteTopicState(Message):
    name: str | None = None
    topic_id: UUID = ZERO_UUID


class DeleteTopicsRequest(Message):
    topics: tuple[DeleteTopicState, ...]
    timeout_ms: int = 60_000


class DeletableTopicResult(ExplainedOutcome):
    name: str | None = None
    topic_id: UUID = ZERO_UUID


class DeleteTopicsResponse(Throttled):
    responses: tuple[DeletableTopicResult, ...] = ()


class DeleteRecordsPartition(Message):
    partition_index: int
    offset: int  # -1: the high watermark


class DeleteRecordsTopic(Message):
    name: str
    partitions: tuple[DeleteRecordsPartition, ...]


class DeleteRecordsRequest(Message):
    topics: tuple[DeleteRecordsTopic, ...]
    timeout_ms: int


class DeleteRecordsPartitionResult(Outcome):
    partition_index: int
    low_watermark: int


class DeleteRecordsTopicResult(Message):
    name: str
    partitions: tuple[DeleteRecordsPartitionResult, ...]


class DeleteRecordsResponse(Throttled):
    topics: tuple[DeleteRecordsTopicResult, ...] = ()
