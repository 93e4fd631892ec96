"""Topics and their partitions: create and delete, and delete their oldest records."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message
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


class CreatableTopicResult(Message):
    name: str
    topic_id: UUID = ZERO_UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: tuple[CreatableTopicConfigs, ...] | None = ()


class CreateTopicsResponse(Message):
    throttle_time_ms: int = 0
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


class CreatePartitionsTopicResult(Message):
    name: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class CreatePartitionsResponse(Message):
    throttle_time_ms: int = 0
    results: tuple[CreatePartitionsTopicResult, ...] = ()


class DeleteTopicState(Message):
    name: str | None = None
    topic_id: UUID = ZERO_UUID


class DeleteTopicsRequest(Message):
    topics: tuple[DeleteTopicState, ...]
    timeout_ms: int = 60_000


class DeletableTopicResult(Message):
    name: str | None = None
    topic_id: UUID = ZERO_UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DeleteTopicsResponse(Message):
    throttle_time_ms: int = 0
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


class DeleteRecordsPartitionResult(Message):
    partition_index: int
    low_watermark: int
    error_code: ErrorCode = ErrorCode.NONE


class DeleteRecordsTopicResult(Message):
    name: str
    partitions: tuple[DeleteRecordsPartitionResult, ...]


class DeleteRecordsResponse(Message):
    throttle_time_ms: int = 0
    topics: tuple[DeleteRecordsTopicResult, ...] = ()
