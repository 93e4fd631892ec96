"""CreateTopics (API key 19), as Kafka's message of version 7 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message
from wire.primitives import ZERO_UUID

__all__ = [
    "CreatableReplicaAssignment",
    "CreatableTopic",
    "CreatableTopicConfig",
    "CreatableTopicConfigs",
    "CreatableTopicResult",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
]


class CreatableReplicaAssignment(Message):
    partition_index: int
    broker_ids: tuple[int, ...] = ()


class CreatableTopicConfig(Message):
    name: str
    value: str | None = None


class CreatableTopic(Message):
    name: str
    num_partitions: int = -1  # -1: the default, or as `assignments` say
    replication_factor: int = -1
    assignments: tuple[CreatableReplicaAssignment, ...] = ()
    configs: tuple[CreatableTopicConfig, ...] = ()


class CreateTopicsRequest(Message):
    topics: tuple[CreatableTopic, ...]
    timeout_ms: int = 60000
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
