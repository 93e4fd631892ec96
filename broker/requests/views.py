"""Answers that describe the cluster to clients: Metadata, DescribeCluster,
DescribeTopicPartitions and ApiVersions.

This module decides which brokers and partitions a client is shown, under the name of the listener
it came in on, and with which error. All of it is read from the published image.

A KRaft broker names a random live broker as the controller: clients send it there what only the
controller can do, and it is forwarded.

Source: Kafka's KRaftMetadataCache, MetadataRequest handling in KafkaApis, KIP-966
(DescribeTopicPartitions).
"""

from collections.abc import Iterable, Iterator
from random import Random

from broker.cluster import Cluster
from broker.requests.auto_creation import AutoCreation
from broker.requests.described_partitions import (
    described_partitions,
    offline_replicas,
    partition_error,
)
from controller.metadata.delta import MetadataDelta
from controller.metadata.partitions import PartitionState
from controller.metadata.security import ON_CLUSTER, ON_TOPIC
from controller.metadata.topics import INTERNAL_TOPICS, TopicImage, topic_name_problem
from quorum.core.effects import Request
from quorum.raft.voters import KRAFT_VERSION
from wire.api_table import api_versions_response, finalized_features
from wire.errors import ErrorCode
from wire.kept_arrays import KeptArray
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
    MetadataResponseTopic,
)
from wire.primitives import OPERATIONS_OMITTED, ZERO_UUID

__all__ = ["Views"]

_BROKERS = 1  # DescribeCluster's endpoint types
_CONTROLLERS = 2
_FEW_ROWS = 500  # changed partitions; with more, everything is prepared anew
_PARTITIONS_MAX = 2000  # max.request.partition.size.limit

_KeptTopics = KeptArray[MetadataResponseTopic]


class _Prepared:
    """Clients of one listener get these parts of an answer, which are true in the present image.

    The arrays keep their bytes for each version of the answer (`wire.kept_arrays`), so a topic that
    has not changed is written once. What depends on who asks is added to an answer and never kept.
    Memory is bounded: only topics that exist are prepared, and their bytes are kept twice, alone
    and in the answer about all topics, for at most four versions.
    """

    __slots__ = ("alive", "all_topics", "topics")

    def __init__(self, alive: frozenset[int]) -> None:
        self.alive = alive
        self.topics: dict[str, _KeptTopics] = {}  # by name, each alone
        self.all_topics: _KeptTopics | None = None  # in the order of their names

    def forget(self, name: str) -> None:
        self.topics.pop(name, None)
        self.all_topics = None


class Views:
    def __init__(self, *, cluster: Cluster, random: Random, auto_creation: AutoCreation) -> None:
        self._cluster = cluster
        self._random = random
        self._auto_creation = auto_creation
        self._image = cluster.image  # what was prepared is of this image
        self._prepared: dict[str, _Prepared] = {}  # by listener

    def forget(self, delta: MetadataDelta) -> None:
        """Drop what was prepared and is no longer true in the present image."""
        self._image = self._cluster.image
        if len(delta.rows_changed) > _FEW_ROWS:
            self._prepared.clear()
            return
        if delta.brokers_changed:  # topics say which of their replicas cannot be reached
            self._prepared = {
                listener: prepared
                for listener, prepared in self._prepared.items()
                if prepared.alive == self._alive(listener)
            }
        changed = {topic_id for topic_id, _ in delta.partitions_changed(self._image.partitions)}
        changed.update(delta.topics_created)
        names = {topic.name for topic in delta.topics_deleted}
        names.update(filter(None, map(self._cluster.topic_name, changed)))
        for prepared in self._prepared.values():
            for name in names:
                prepared.forget(name)

    def _prepared_for(self, listener: str) -> _Prepared:
        """A client may ask when a new image is there, and `forget` has not been called for it."""
        if self._image is not self._cluster.image:
            self._image = self._cluster.image
            self._prepared.clear()
        prepared = self._prepared.get(listener)
        if prepared is None:
            prepared = self._prepared[listener] = _Prepared(self._alive(listener))
        return prepared

    def _alive(self, listener: str) -> frozenset[int]:
        return frozenset(broker.id for broker, _ in self._cluster.alive_brokers(listener))

    # --- Metadata ---------------------------------------------------------------------------

    def metadata(self, request: Request, _now_ms: int) -> MetadataResponse:
        body = request.body
        assert isinstance(body, MetadataRequest), body
        listener = request.listener
        topics: tuple[MetadataResponseTopic, ...]
        if body.topics is None:
            topics = self._all_topics(listener)
        else:
            topics = self._asked_topics(request, body)
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

    def _asked_topics(self, request: Request, body: MetadataRequest) -> _KeptTopics:
        asked = body.topics or ()
        found = [self._found(each) for each in asked]
        prepared = self._prepared_for(request.listener)
        self._prepare([topic for topic in found if topic is not None], prepared)
        return KeptArray.joined(
            [
                KeptArray((self._unknown(each, request, body),))
                if topic is None
                else prepared.topics[topic.name]
                for each, topic in zip(asked, found, strict=True)
            ]
        )

    def _found(self, asked: MetadataRequestTopic) -> TopicImage | None:
        image = self._cluster.image
        if asked.topic_id.int:
            return image.topic_by_id(asked.topic_id)
        return image.topic(asked.name or "")

    def _unknown(
        self, asked: MetadataRequestTopic, request: Request, body: MetadataRequest
    ) -> MetadataResponseTopic:
        if asked.topic_id.int:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                name=None,
                topic_id=asked.topic_id,
                partitions=(),
            )
        name = asked.name or ""
        return unknown_topic(name, self._missing(name, request, body))

    def _missing(self, name: str, request: Request, body: MetadataRequest) -> ErrorCode:
        if topic_name_problem(name) is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if not (body.allow_auto_topic_creation and self._cluster.config.auto_create_topics):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self._auto_creation.create(name, request)
        return ErrorCode.LEADER_NOT_AVAILABLE  # every client asks again after this one

    def _all_topics(self, listener: str) -> _KeptTopics:
        prepared = self._prepared_for(listener)
        if prepared.all_topics is None:
            by_name = self._cluster.image.topics.by_name
            self._prepare(by_name.values(), prepared)
            prepared.all_topics = KeptArray.joined(
                [prepared.topics[name] for name in sorted(by_name)]
            )
        return prepared.all_topics

    def _prepare(self, topics: Iterable[TopicImage], prepared: _Prepared) -> None:
        missing = [topic for topic in topics if topic.name not in prepared.topics]
        if not missing:
            return
        table = self._cluster.image.partitions
        described = described_partitions(table, missing, prepared.alive)
        for topic, partitions in zip(missing, described, strict=True):
            one = MetadataResponseTopic(
                name=topic.name,
                topic_id=topic.id,
                is_internal=topic.name in INTERNAL_TOPICS,
                partitions=partitions,
            )
            prepared.topics[topic.name] = KeptArray((one,))

    # --- DescribeTopicPartitions ------------------------------------------------------------

    def topic_partitions(self, request: Request) -> DescribeTopicPartitionsResponse:
        """Topics by name, from the cursor on, until there are enough partitions."""
        body = request.body
        assert isinstance(body, DescribeTopicPartitionsRequest), body
        names = sorted({topic.name for topic in body.topics} or self._cluster.image.topics.by_name)
        cursor = body.cursor
        if cursor is not None and not _is_cursor_of(body, cursor):
            return _all_invalid(body)
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
        alive = self._prepared_for(listener).alive
        return DescribeTopicPartitionsResponsePartition(
            error_code=partition_error(state.leader, alive),
            partition_index=index,
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=state.replicas,
            isr_nodes=state.isr,
            eligible_leader_replicas=state.eligible_leader_replicas,
            last_known_elr=state.last_known_elr,
            offline_replicas=offline_replicas(state.replicas, alive),
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


def _is_cursor_of(body: DescribeTopicPartitionsRequest, cursor: Cursor) -> bool:
    """If topics are named, it is at one of them (DescribeTopicPartitionsRequestHandler)."""
    is_named = not body.topics or any(each.name == cursor.topic_name for each in body.topics)
    return is_named and cursor.partition_index >= 0


def _all_invalid(body: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    topics = tuple(
        DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=each.name)
        for each in body.topics
    )
    return DescribeTopicPartitionsResponse(topics=topics)


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
