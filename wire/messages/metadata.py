"""Metadata (API key 3), as Kafka's message of version 13 has it.

The operations on the cluster are in versions 8 to 10 only.
"""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message
from wire.primitives import ZERO_UUID

__all__ = [
    "MetadataRequest",
    "MetadataRequestTopic",
    "MetadataResponse",
    "MetadataResponseBroker",
    "MetadataResponsePartition",
    "MetadataResponseTopic",
]


class MetadataRequestTopic(Message):
    topic_id: UUID = ZERO_UUID
    name: str | None = None


class MetadataRequest(Message):
    topics: tuple[MetadataRequestTopic, ...] | None = None  # None: all
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


class MetadataResponseBroker(Message):
    node_id: int
    host: str
    port: int
    rack: str | None = None


class MetadataResponsePartition(Message):
    error_code: ErrorCode = ErrorCode.NONE
    partition_index: int
    leader_id: int = -1
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


class MetadataResponseTopic(Message):
    error_code: ErrorCode = ErrorCode.NONE
    name: str | None = None
    topic_id: UUID = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[MetadataResponsePartition, ...] = ()
    topic_authorized_operations: int = -2147483648


class MetadataResponse(Message):
    throttle_time_ms: int = 0
    brokers: tuple[MetadataResponseBroker, ...] = ()
    cluster_id: str | None = None
    controller_id: int = -1
    topics: tuple[MetadataResponseTopic, ...] = ()
    cluster_authorized_operations: int = -2147483648
    error_code: ErrorCode = ErrorCode.NONE
