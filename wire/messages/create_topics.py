"""CreateTopics (API key 19), as Kafka's message of version 7 has it."""

from dataclasses import dataclass
from uuid import UUID

from wire.errors import ErrorCode
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableReplicaAssignment:
    partition_index: int
    broker_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableTopicConfig:
    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableTopic:
    name: str
    num_partitions: int = -1  # -1: the default, or as `assignments` say
    replication_factor: int = -1
    assignments: tuple[CreatableReplicaAssignment, ...] = ()
    configs: tuple[CreatableTopicConfig, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsRequest:
    topics: tuple[CreatableTopic, ...]
    timeout_ms: int = 60000
    validate_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableTopicConfigs:
    name: str
    value: str | None = None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableTopicResult:
    name: str
    topic_id: UUID = ZERO_UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: tuple[CreatableTopicConfigs, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsResponse:
    throttle_time_ms: int = 0
    topics: tuple[CreatableTopicResult, ...] = ()
