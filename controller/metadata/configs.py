"""Which value of a configuration key holds. Whether a new one may is decided in `config_checks`.

A topic's own value is stronger than the broker's dynamic one, then the dynamic default of all
brokers, then the broker's file (`static`), then Kafka's default. The file differs from node to
node, so whoever asks brings it.

Source: Kafka's DynamicBrokerConfig and KIP-226 for the order; KIP-339 for the operations.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

from controller.metadata.config_keys import (
    BROKER_KEYS,
    CLIENT_METRICS_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
    ConfigKey,
)
from controller.metadata.image import CLUSTER_DEFAULT, MetadataImage, ResourceType
from wire.errors import ErrorCode

__all__ = [
    "MIN_ISR",
    "NO_TOPIC",
    "UNCLEAN_ELECTION",
    "ConfigSource",
    "ConfigValue",
    "Refusal",
    "broker_levels",
    "broker_value",
    "in_topic_unit",
    "keys_of",
    "min_insync_replicas",
    "topic_config",
    "topic_value",
    "topic_values",
    "topics_with_unclean_election",
    "unclean_election_enabled",
]

UNCLEAN_ELECTION = "unclean.leader.election.enable"
MIN_ISR = "min.insync.replicas"
NO_TOPIC = ""  # no topic has this name: its values are the defaults
NO_STATIC: Mapping[str, str] = {}
_KEYS: Mapping[int, Mapping[str, ConfigKey]] = {
    ResourceType.TOPIC: TOPIC_KEYS,
    ResourceType.BROKER: BROKER_KEYS,
    ResourceType.CLIENT_METRICS: CLIENT_METRICS_KEYS,
    ResourceType.GROUP: GROUP_KEYS,
}


class ConfigSource(IntEnum):
    """As DescribeConfigs has them."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A value of `name`, which may be a synonym of the key that was asked for."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something is not done: for the one who asked."""

    error_code: ErrorCode
    message: str


def keys_of(resource_type: int) -> Mapping[str, ConfigKey] | None:
    """The keys that a resource of this type may have; None if it has none in the metadata."""
    return _KEYS.get(resource_type)


def topic_config(
    image: MetadataImage,
    topic: str,
    *,
    broker_id: int | None = None,
    static: Mapping[str, str] = NO_STATIC,
) -> dict[str, str]:
    """Every key of a topic with the value that holds (on a broker, if one is given)."""
    return {
        name: topic_value(image, topic, name, broker_id=broker_id, static=static)
        for name in TOPIC_KEYS
    }


def topic_value(
    image: MetadataImage,
    topic: str,
    key: str,
    *,
    broker_id: int | None = None,
    static: Mapping[str, str] = NO_STATIC,
) -> str:
    """The value that holds, in the unit of the topic's key."""
    definition = TOPIC_KEYS[key]
    strongest = next(topic_values(image, topic, definition, broker_id=broker_id, static=static))
    return in_topic_unit(definition, strongest)


def in_topic_unit(key: ConfigKey, value: ConfigValue) -> str:
    """A value of a topic's key or one of its synonyms, in the unit of the topic's."""
    assert value.value is not None, f"{key.name} has no default"
    factors = {synonym.name: synonym.factor for synonym in key.synonyms}
    factor = factors.get(value.name, 1)
    if factor == 1 or value.source is ConfigSource.DEFAULT:
        return value.value
    number = int(value.value)
    return str(number * factor if number >= 0 else number)  # -1 is "none" in every unit


def topic_values(
    image: MetadataImage,
    topic: str,
    key: ConfigKey,
    *,
    broker_id: int | None = None,
    static: Mapping[str, str] = NO_STATIC,
) -> Iterator[ConfigValue]:
    """The values of a topic's key on every level that has one, the strongest first."""
    own = image.config(ResourceType.TOPIC, topic).get(key.name)
    if own is not None:
        yield ConfigValue(key.name, own, ConfigSource.TOPIC)
    names = [synonym.name for synonym in key.synonyms]
    yield from broker_levels(image, names, broker_id=broker_id, static=static)
    yield ConfigValue(names[0] if names else key.name, key.default, ConfigSource.DEFAULT)


def broker_levels(
    image: MetadataImage,
    names: Sequence[str],
    *,
    broker_id: int | None,
    static: Mapping[str, str],
) -> Iterator[ConfigValue]:
    """The values of some keys of a broker on every level but the last, the strongest first."""
    own: Mapping[str, str] = {}
    if broker_id is not None:
        own = image.config(ResourceType.BROKER, str(broker_id))
    levels = (
        (own, ConfigSource.DYNAMIC_BROKER),
        (image.config(ResourceType.BROKER, CLUSTER_DEFAULT), ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (static, ConfigSource.STATIC_BROKER),
    )
    for values, source in levels:
        for name in names:
            if name in values:
                yield ConfigValue(name, values[name], source)


def broker_value(
    image: MetadataImage, key: str, *, broker_id: int, static: Mapping[str, str]
) -> str | None:
    """The value of a broker's own key that holds now; it may change while the broker runs."""
    levels = broker_levels(image, [key], broker_id=broker_id, static=static)
    return next((level.value for level in levels), BROKER_KEYS[key].default)


def min_insync_replicas(
    image: MetadataImage, topic: str, static: Mapping[str, str] = NO_STATIC
) -> int:
    return int(topic_value(image, topic, MIN_ISR, static=static))


def unclean_election_enabled(
    image: MetadataImage, topic: str, static: Mapping[str, str] = NO_STATIC
) -> bool:
    value = topic_value(image, topic, UNCLEAN_ELECTION, static=static)
    return value.strip().lower() == "true"


def topics_with_unclean_election(
    image: MetadataImage, static: Mapping[str, str] = NO_STATIC
) -> frozenset[UUID]:
    """The topics that `unclean_election_enabled` holds for, without asking each of them."""
    own = [
        topic
        for resource_type, name in image.configs
        if resource_type == ResourceType.TOPIC
        and UNCLEAN_ELECTION in image.configs[resource_type, name]
        and (topic := image.topic(name)) is not None
    ]
    allowed = {topic.id for topic in own if unclean_election_enabled(image, topic.name, static)}
    if unclean_election_enabled(image, NO_TOPIC, static):
        return frozenset(image.topics.by_id.keys() - {topic.id for topic in own} | allowed)
    return frozenset(allowed)
