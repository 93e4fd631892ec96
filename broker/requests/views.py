"""What the cluster looks like to clients: Metadata, DescribeCluster, DescribeTopicPartitions,
ApiVersions.

Decides which brokers and partitions a client is shown, under the name of the listener it came in
on, and with which error. All of it is read from the published image.

A KRaft broker names a random live broker as the controller: clients send it there what only the
controller can do, and it is forwarded.

Source: Kafka's KRaftMetadataCache, MetadataRequest handling in KafkaApis, KIP-966
(DescribeTopicPartitions).
"""

from collections.abc import Collection, Iterator
from random import Random

from broker.cluster import Cluster
from broker.groups.offsets_topic import INTERNAL_TOPICS
from broker.requests.auto_creation import AutoCreation
from controller.metadata.delta import MetadataDelta
from controller.metadata.partitions import PartitionState
from controller.metadata.security import ON_CLUSTER, ON_TOPIC
from controller.metadata.topics import TopicImage, topic_name_problem
from quorum.core.effects import Request
from quorum.raft.voters import KRAFT_VERSION
from wire.api_table import api_versions_response, finalized_features
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.features import ApiVersionsResponse, SupportedFeatureKey
from wire.messages.metadata import (
    Cursor,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.primitives import OPERATIONS_OMITTED, ZERO_UUID

__all__ = ["Views", "offline_replicas"]

_BROKERS = 1  # DescribeCluster's endpoint types
_CONTROLLERS = 2
_FEW_ROWS = 500  # changed partitions; with more, everything is prepared anew
_PARTITIONS_MAX = 2000  # max.request.partition.size.limit


def offline_replicas(state: PartitionState, alive: Collection[int]) -> tuple[int, ...]:
    """Replicas on brokers that cannot be reached: fenced, unregistered, or without the listener."""
    return tuple(replica for replica in state.replicas if replica not in alive)


def partition_error(state: PartitionState, alive: Collection[int]) -> ErrorCode:
    return ErrorCode.NONE if state.leader in alive else ErrorCode.LEADER_NOT_AVAILABLE


class Views:
    def __init__(self, *, cluster: Cluster, random: Random, auto_creation: AutoCreation) -> None:
        self._cluster = cluster
        self._random = random
        self._auto_creation = auto_creation
        self._image = cluster.image  # what was prepared is of this image
        self._known: dict[tuple[str, str], MetadataResponseTopic] = {}  # by listener and name
        self._alive: dict[str, frozenset[int]] = {}  # by listener

    def forget(self, delta: MetadataDelta) -> None:
        """Drop what was prepared and is no longer true in the image of now."""
        self._image = self._cluster.image
        if delta.brokers_changed or delta.topics_deleted or len(delta.rows_changed) > _FEW_ROWS:
            self._known.clear()
            self._alive.clear()
            return
        table = self._cluster.image.partitions
        changed = {topic_id for topic_id, _ in delta.partitions_changed(table)}
        for place in [place for place, topic in self._known.items() if topic.topic_id in changed]:
            del self._known[place]

    def _check_image(self) -> None:
        """An image may be there before it is said what has changed: it is asked for by clients."""
        if self._image is not self._cluster.image:
            self._image = self._cluster.image
            self._known.clear()
            self._alive.clear()

    def _alive_ids(self, listener: str) -> frozenset[int]:
        self._check_image()
        alive = self._alive.get(listener)
        if alive is None:
            alive = frozenset(broker.id for broker, _ in self._cluster.alive_brokers(listener))
            self._alive[listener] = alive
        return alive

    # --- Metadata ---------------------------------------------------------------------------

    def metadata(self, request: Request, now_ms: int) -> MetadataResponse:
        body = request.body
        assert isinstance(body, MetadataRequest), body
        listener = request.listener
        if body.topics is None:
            names = sorted(self._cluster.image.topics.by_name)
            topics = tuple(self._topic(name, listener) for name in names)
        else:
            topics = tuple(
                self._asked_topic(asked, body, listener, now_ms) for asked in body.topics
            )
        if body.include_topic_authorized_operations:
            topics = tuple(map(with_operations, topics))
        brokers = tuple(
            MetadataResponseBroker(
                node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
            for broker, endpoint in self._cluster.alive_brokers(listener)
        )
        return MetadataResponse(
            brokers=brokers,
            cluster_id=self._cluster.config.cluster_id,
            controller_id=self._any(tuple(broker.node_id for broker in brokers)),
            topics=topics,
            cluster_authorized_operations=(
                ON_CLUSTER if body.include_cluster_authorized_operations else OPERATIONS_OMITTED
            ),
        )

    def _any(self, broker_ids: tuple[int, ...]) -> int:
        return self._random.choice(broker_ids) if broker_ids else -1

    def _asked_topic(
        self, asked: MetadataRequestTopic, body: MetadataRequest, listener: str, now_ms: int
    ) -> MetadataResponseTopic:
        if asked.topic_id.int:
            name = self._cluster.topic_name(asked.topic_id)
            if name is not None:
                return self._topic(name, listener)
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                name=None,
                topic_id=asked.topic_id,
                partitions=(),
            )
        name = asked.name or ""
        if self._cluster.topic_id(name) is not None:
            return self._topic(name, listener)
        return unknown_topic(name, self._missing(name, body, now_ms))

    def _missing(self, name: str, body: MetadataRequest, now_ms: int) -> ErrorCode:
        if topic_name_problem(name) is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if not (body.allow_auto_topic_creation and self._cluster.config.auto_create_topics):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self._auto_creation.create(name, now_ms)
        return ErrorCode.LEADER_NOT_AVAILABLE  # every client asks again after this one

    def _topic(self, name: str, listener: str) -> MetadataResponseTopic:
        self._check_image()
        known = self._known.get((listener, name))
        if known is None:
            topic = self._cluster.image.topic(name)
            assert topic is not None, name
            known = self._known[(listener, name)] = self._describe(topic, listener)
        return known

    def _describe(self, topic: TopicImage, listener: str) -> MetadataResponseTopic:
        alive = self._alive_ids(listener)
        partitions = tuple(
            MetadataResponsePartition(
                error_code=partition_error(state, alive),
                partition_index=index,
                leader_id=state.leader,
                leader_epoch=state.leader_epoch,
                replica_nodes=state.replicas,
                isr_nodes=state.isr,
                offline_replicas=offline_replicas(state, alive),
            )
            for index, state in self._cluster.image.partitions_of(topic.id)
        )
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=partitions,
        )

    # --- DescribeTopicPartitions ------------------------------------------------------------

    def topic_partitions(self, request: Request) -> DescribeTopicPartitionsResponse:
        """Topics by name, from the cursor on, until there are enough partitions."""
        body = request.body
        assert isinstance(body, DescribeTopicPartitionsRequest), body
        names = sorted({topic.name for topic in body.topics} or self._cluster.image.topics.by_name)
        cursor = body.cursor
        left = max(1, min(body.response_partition_limit, _PARTITIONS_MAX))
        described: list[DescribeTopicPartitionsResponseTopic] = []
        for name in names:
            if cursor is not None and name < cursor.topic_name:
                continue
            first = 0
            if cursor is not None and name == cursor.topic_name:
                first = cursor.partition_index
            if left == 0:
                return DescribeTopicPartitionsResponse(
                    topics=tuple(described),
                    next_cursor=Cursor(topic_name=name, partition_index=first),
                )
            topic = self._cluster.image.topic(name)
            if topic is None:
                described.append(undescribed_topic(name))
                continue
            states = self._states(topic, first)
            shown = tuple(
                self._describe_partition(index, state, request.listener)
                for index, state in states[:left]
            )
            left -= len(shown)
            described.append(
                DescribeTopicPartitionsResponseTopic(
                    name=name,
                    topic_id=topic.id,
                    is_internal=name in INTERNAL_TOPICS,
                    partitions=shown,
                    topic_authorized_operations=ON_TOPIC,
                )
            )
            if len(shown) < len(states):
                return DescribeTopicPartitionsResponse(
                    topics=tuple(described),
                    next_cursor=Cursor(topic_name=name, partition_index=states[len(shown)][0]),
                )
        return DescribeTopicPartitionsResponse(topics=tuple(described))

    def _states(self, topic: TopicImage, first: int) -> list[tuple[int, PartitionState]]:
        states = self._cluster.image.partitions_of(topic.id)
        return [(index, state) for index, state in states if index >= first]

    def _describe_partition(
        self, index: int, state: PartitionState, listener: str
    ) -> DescribeTopicPartitionsResponsePartition:
        alive = self._alive_ids(listener)
        return DescribeTopicPartitionsResponsePartition(
            error_code=partition_error(state, alive),
            partition_index=index,
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=state.replicas,
            isr_nodes=state.isr,
            eligible_leader_replicas=state.eligible_leader_replicas,
            last_known_elr=state.last_known_elr,
            offline_replicas=offline_replicas(state, alive),
        )

    # --- DescribeCluster, ApiVersions -------------------------------------------------------

    def cluster(self, request: Request) -> DescribeClusterResponse:
        body = request.body
        assert isinstance(body, DescribeClusterRequest), body
        if body.endpoint_type != _BROKERS:
            is_known = body.endpoint_type == _CONTROLLERS
            return DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE
                if is_known
                else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                error_message="this is a broker: ask it for the endpoints of brokers",
                cluster_id="",
                brokers=(),
            )
        alive = tuple(self._described_brokers(request.listener))
        fenced = self._fenced_brokers() if body.include_fenced_brokers else iter(())
        return DescribeClusterResponse(
            cluster_id=self._cluster.config.cluster_id,
            controller_id=self._any(tuple(broker.broker_id for broker in alive)),
            brokers=(*alive, *fenced),
            cluster_authorized_operations=(
                ON_CLUSTER if body.include_cluster_authorized_operations else OPERATIONS_OMITTED
            ),
        )

    def _described_brokers(self, listener: str) -> Iterator[DescribeClusterBroker]:
        for broker, endpoint in self._cluster.alive_brokers(listener):
            yield DescribeClusterBroker(
                broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )

    def _fenced_brokers(self) -> Iterator[DescribeClusterBroker]:
        for broker_id, broker in sorted(self._cluster.image.brokers.items()):
            if broker.fenced and broker.end_points:
                address = broker.end_points[0]
                yield DescribeClusterBroker(
                    broker_id=broker_id,
                    host=address.host,
                    port=address.port,
                    rack=broker.rack,
                    is_fenced=True,
                )

    def api_versions(self, kraft_version: int) -> ApiVersionsResponse:
        image = self._cluster.image
        return api_versions_response(
            self._cluster.config.listener_kind,
            supported=tuple(
                SupportedFeatureKey(
                    name=feature.name,
                    min_version=feature.min_supported_version,
                    max_version=feature.max_supported_version,
                )
                for feature in self._cluster.config.features
            ),
            finalized=finalized_features({**image.features, KRAFT_VERSION: kraft_version}),
            finalized_epoch=image.at.offset - 1,
        )


def with_operations(topic: MetadataResponseTopic) -> MetadataResponseTopic:
    """The topic with what may be done to it; as in Kafka, also if it does not exist, but has a
    name."""
    if topic.name is None:
        return topic
    return replace(topic, topic_authorized_operations=ON_TOPIC)


def unknown_topic(name: str, error: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=error, name=name, topic_id=ZERO_UUID, partitions=())


def undescribed_topic(name: str) -> DescribeTopicPartitionsResponseTopic:
    error = (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic_name_problem(name) is None
        else ErrorCode.INVALID_TOPIC_EXCEPTION
    )
    return DescribeTopicPartitionsResponseTopic(
        error_code=error,
        name=name,
        topic_id=ZERO_UUID,
        partitions=(),
        topic_authorized_operations=ON_TOPIC,
    )
