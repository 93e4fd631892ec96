"""The brokers, topics and partitions of a cluster, as clients ask for them."""

from typing import Annotated
from uuid import UUID

from wire.kept_arrays import KEPT
from wire.message import Message
from wire.messages.endpoints import (
    NodeEndpoint,
    Outcome,
    Throttled,
    ThrottledExplanation,
    ThrottledOutcome,
)
from wire.primitives import OPERATIONS_OMITTED, ZERO_UUID


class MetadataRequestTopic(Message):
    topic_id: UUID = ZERO_UUID
    name: str | None = None


class MetadataRequest(Message):
    topics: tuple[MetadataRequestTopic, ...] | None = None  # None: all
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


class MetadataResponseBroker(NodeEndpoint):
    pass


class MetadataResponsePartition(Outcome):
    partition_index: int
    leader_id: int = -1
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


class MetadataResponseTopic(Outcome):
    name: str | None = None
    topic_id: UUID = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[MetadataResponsePartition, ...] = ()
    topic_authorized_operations: int = OPERATIONS_OMITTED


class MetadataResponse(ThrottledOutcome):
    brokers: tuple[MetadataResponseBroker, ...] = ()
    cluster_id: str | None = None
    controller_id: int = -1
    topics: Annotated[tuple[MetadataResponseTopic, ...], KEPT] = ()
    cluster_authorized_operations: int = OPERATIONS_OMITTED


class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1  # 1 brokers, 2 controllers (KIP-919)
    include_fenced_brokers: bool = False


class DescribeClusterBroker(Message):
    broker_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


class DescribeClusterResponse(ThrottledExplanation):
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: tuple[DescribeClusterBroker, ...] = ()
    cluster_authorized_operations: int = OPERATIONS_OMITTED


class TopicRequest(Message):
    name: str


class Cursor(Message):
    topic_name: str
    partition_index: int


class DescribeTopicPartitionsRequest(Message):
    topics: tuple[TopicRequest, ...]
    response_partition_limit: int = 2000
    cursor: Cursor | None = None  # where to go on: `next_cursor` of the last response


class DescribeTopicPartitionsResponsePartition(MetadataResponsePartition):
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


class DescribeTopicPartitionsResponseTopic(Outcome):
    name: str | None = None
    topic_id: UUID = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = ()
    topic_authorized_operations: int = OPERATIONS_OMITTED


class DescribeTopicPartitionsResponse(Throttled):
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = ()
    next_cursor: Cursor | None = None
