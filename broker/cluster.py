"""All parts of a broker read the published image of the cluster's metadata from one place.

`Cluster` holds the image and no rule. Only `publish` replaces it, so that all parts of the broker
see the metadata log at the same offset.
"""

from collections.abc import Iterable, Iterator
from uuid import UUID

from broker.config import BrokerConfig
from broker.partition.topic_settings import TopicSettings, topic_settings
from controller.metadata.configs import broker_value
from controller.metadata.image import BrokerImage, MetadataImage
from controller.metadata.partitions import NO_LEADER
from quorum.core.types import NO_EPOCH, Endpoint
from wire.errors import ErrorCode

__all__ = ["Cluster", "Incarnation"]


class Cluster:
    __slots__ = ("_settings", "config", "image", "is_published", "static")

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self.image = MetadataImage()
        self.is_published = False
        self.static = dict(config.properties)  # server.properties, below what the log says
        self._settings: dict[str, TopicSettings] = {}  # of this image, as far as they were asked

    def publish(self, image: MetadataImage) -> None:
        self.image = image
        self.is_published = True
        self._settings.clear()

    # --- brokers ----------------------------------------------------------------------------

    @property
    def own_registration(self) -> BrokerImage | None:
        return self.image.brokers.get(self.config.node_id)

    def epoch_of(self, incarnation_id: UUID) -> int | None:
        """The broker epoch of this process, once its registration is in the metadata. That may come
        before the answer to the registration, and logs are opened by then."""
        own = self.own_registration
        return own.epoch if own is not None and own.incarnation_id == incarnation_id else None

    def registered_epoch(self, broker_id: int) -> int | None:
        broker = self.image.brokers.get(broker_id)
        return None if broker is None else broker.epoch

    def is_active(self, broker_id: int) -> bool:
        return self.image.is_active(broker_id)

    def endpoint(self, broker_id: int, listener: str) -> Endpoint | None:
        """Where an unfenced broker listens, under that listener name."""
        broker = self.image.brokers.get(broker_id)
        if broker is None or broker.fenced:
            return None
        return endpoint_of(broker, listener)

    def endpoints(self, broker_ids: Iterable[int], listener: str) -> Iterator[Endpoint]:
        """Yields the endpoints of those that can be reached, in the same order."""
        for broker_id in broker_ids:
            endpoint = self.endpoint(broker_id, listener)
            if endpoint is not None:
                yield endpoint

    def alive_brokers(self, listener: str) -> Iterator[tuple[BrokerImage, Endpoint]]:
        """Unfenced brokers with that listener, by id."""
        for broker_id in sorted(self.image.brokers):
            broker = self.image.brokers[broker_id]
            endpoint = None if broker.fenced else endpoint_of(broker, listener)
            if endpoint is not None:
                yield broker, endpoint

    # --- topics and partitions --------------------------------------------------------------

    def topic_name(self, topic_id: UUID) -> str | None:
        topic = self.image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    def topic_id(self, name: str) -> UUID | None:
        topic = self.image.topic(name)
        return None if topic is None else topic.id

    def topic_with(self, name: str, index: int) -> UUID | None:
        """The id of the topic, if it has that partition."""
        topic = self.image.topic(name)
        return None if topic is None or topic.row(index) is None else topic.id

    def leader_of(self, name: str, topic_id: UUID, index: int) -> tuple[int, int]:
        """Leader and leader epoch, for those who ask the wrong broker (KIP-951).

        (-1, -1) if the partition is not known; `topic_id` counts if it is not zero.
        """
        topic = self.image.topic_by_id(topic_id) if topic_id.int else self.image.topic(name)
        state = None if topic is None else self.image.partition(topic.id, index)
        return (NO_LEADER, NO_EPOCH) if state is None else (state.leader, state.leader_epoch)

    def find(self, name: str, topic_id: UUID, index: int) -> str | ErrorCode:
        """The name of the topic that has this partition; `topic_id` counts if it is not zero."""
        if topic_id.int:
            topic = self.image.topic_by_id(topic_id)
            if topic is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = self.image.topic(name)
        if topic is None or topic.row(index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return topic.name

    def number(self, key: str) -> int:
        """A setting of this broker that may change while it runs."""
        return int(self._value(key))

    def flag(self, key: str) -> bool:
        return self._value(key) == "true"

    def ratio(self, key: str) -> float:
        return float(self._value(key))

    def _value(self, key: str) -> str:
        node_id = self.config.node_id
        value = broker_value(self.image, key, broker_id=node_id, static=self.static)
        assert value is not None, f"{key} has no default"
        return value

    def settings_of(self, topic: str) -> TopicSettings:
        found = self._settings.get(topic)
        if found is None:
            found = topic_settings(
                self.image, topic, broker_id=self.config.node_id, static=self.static
            )
            self._settings[topic] = found
        return found


class Incarnation:
    """The cluster knows each life of the broker's process as an incarnation."""

    __slots__ = ("_cluster", "id", "node_id", "registered_epoch")

    def __init__(self, cluster: Cluster, id_: UUID) -> None:
        self._cluster = cluster
        self.id = id_
        self.node_id = cluster.config.node_id
        self.registered_epoch = -1  # as the last registration was answered

    @property
    def published_epoch(self) -> int | None:
        """The broker epoch under which the metadata has this incarnation."""
        return self._cluster.epoch_of(self.id)

    @property
    def broker_epoch(self) -> int:
        """The broker epoch of all requests but heartbeats, and of .kafka_cleanshutdown once the
        broker has stopped in order."""
        published = self.published_epoch
        return self.registered_epoch if published is None else published


def endpoint_of(broker: BrokerImage, listener: str) -> Endpoint | None:
    for item in broker.end_points:
        if item.name == listener:
            return Endpoint(broker.id, item.host, item.port)
    return None
