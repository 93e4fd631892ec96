"""Configurations: which value of a key holds, and whether a resource may have a new one.

A topic's own value is stronger than the broker's dynamic one, then the dynamic default of all
brokers, then the broker's file (`static`), then Kafka's default. The file differs from node to
node, so the caller brings it. The first value that is wrong names the error.

Source: Kafka's DynamicBrokerConfig and KIP-226 for the order; KIP-339 for the operations; Kafka's
ControllerConfigurationValidator, LogConfig, GroupConfig and ClientMetricsConfigs for the checks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TypeVar
from uuid import UUID

from controller.metadata import config_keys
from controller.metadata.delta import ConfigResource
from controller.metadata.image import CLUSTER_DEFAULT, MetadataImage, ResourceType
from controller.metadata.tls_keys import STORE_KEYS
from wire.errors import ErrorCode

__all__ = [
    "MIN_ISR",
    "NO_ERROR",
    "NO_TOPIC",
    "UNCLEAN_ELECTION",
    "ConfigSource",
    "ConfigValue",
    "Refusal",
    "broker_key",
    "broker_levels",
    "broker_value",
    "check_config",
    "check_topic_config",
    "keys_of",
    "min_insync_replicas",
    "topic_value",
    "topics_with_unclean_election",
    "unclean_election_enabled",
]

_Result = TypeVar("_Result")
UNCLEAN_ELECTION = "unclean.leader.election.enable"
MIN_ISR = "min.insync.replicas"
NO_TOPIC = ""  # no topic has this name: its values are the defaults
NO_STATIC: Mapping[str, str] = {}
_KEYS: Mapping[int, Mapping[str, config_keys.ConfigKey]] = {
    ResourceType.TOPIC: config_keys.TOPIC_KEYS,
    ResourceType.BROKER: config_keys.BROKER_KEYS,
    ResourceType.CLIENT_METRICS: config_keys.CLIENT_METRICS_KEYS,
    ResourceType.GROUP: config_keys.GROUP_KEYS,
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
    error_code: ErrorCode
    message: str | None

    def told(self, result: Callable[..., _Result], **named: object) -> _Result:
        """A `result` that says so; `named` are its other fields."""
        return result(error_code=self.error_code, error_message=self.message, **named)


NO_ERROR = Refusal(ErrorCode.NONE, None)


def keys_of(resource_type: int) -> Mapping[str, config_keys.ConfigKey] | None:
    """The keys that a resource of this type may have; None if it has none in the metadata."""
    return _KEYS.get(resource_type)


def topic_value(
    image: MetadataImage,
    topic: str,
    key: str,
    *,
    broker_id: int | None = None,
    static: Mapping[str, str] = NO_STATIC,
) -> str:
    """The value that holds, in the unit of the topic's key.

    That of the topic is stronger than those of its synonyms among the broker's keys.
    """
    own = image.config(ResourceType.TOPIC, topic).get(key)
    if own is not None:
        return own
    definition = config_keys.TOPIC_KEYS[key]
    factors = {synonym.name: synonym.factor for synonym in definition.synonyms}
    for level in broker_levels(image, tuple(factors), broker_id=broker_id, static=static):
        assert level.value is not None, level
        if factors[level.name] == 1:
            return level.value
        number = int(level.value)
        return str(number * factors[level.name] if number >= 0 else number)  # -1: none, in any unit
    assert definition.default is not None, f"{key} has no default"
    return definition.default


def broker_levels(
    image: MetadataImage, names: Sequence[str], *, broker_id: int | None, static: Mapping[str, str]
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
    return next((level.value for level in levels), config_keys.BROKER_KEYS[key].default)


def broker_key(name: str) -> config_keys.ConfigKey | None:
    """The key that `name` is, or is for one listener: `listener.name.{listener}.{key}`."""
    if name.startswith("listener.name."):
        name = name.split(".", 3)[-1]
    return config_keys.BROKER_KEYS.get(name)


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


_LIMIT_OF = {  # topic keys, and the one whose value they may not exceed
    "min.compaction.lag.ms": "max.compaction.lag.ms",
    "local.retention.ms": "retention.ms",
    "local.retention.bytes": "retention.bytes",
}


def check_config(
    resource: ConfigResource, now: Mapping[str, str], values: Mapping[str, str]
) -> Refusal | None:
    """Why a resource that has the configs `now` may not have `values`, all of them, instead."""
    resource_type, name = resource
    match resource_type:
        case ResourceType.TOPIC:
            return _check_topic(values)
        case ResourceType.BROKER:
            changed = {key for key in now.keys() | values if now.get(key) != values.get(key)}
            return _check_broker(values, changed, is_default=name == CLUSTER_DEFAULT)
        case ResourceType.CLIENT_METRICS:
            refusal = _check_values(values, config_keys.CLIENT_METRICS_KEYS, "client metrics")
            return refusal and replace(refusal, error_code=ErrorCode.INVALID_REQUEST)
        case ResourceType.GROUP:
            return _check_values(values, config_keys.GROUP_KEYS, "group")
        case other:
            raise AssertionError(f"no configs of resource type {other}")


def check_topic_config(values: Mapping[str, str | None]) -> Refusal | None:
    """Why a topic may not have this configuration, as a whole."""
    empty = sorted(name for name, value in values.items() if value is None)
    if empty:
        names = ", ".join(empty)
        return Refusal(ErrorCode.INVALID_CONFIG, f"Topic configs without a value: {names}.")
    return _check_topic({name: value for name, value in values.items() if value is not None})


def _check_topic(values: Mapping[str, str]) -> Refusal | None:
    return _check_values(values, config_keys.TOPIC_KEYS, "topic") or _contradiction(values)


def _check_values(
    values: Mapping[str, str], keys: Mapping[str, config_keys.ConfigKey], of_what: str
) -> Refusal | None:
    for name, value in values.items():
        key = keys.get(name)
        if key is None:
            return Refusal(ErrorCode.INVALID_CONFIG, f"Unknown {of_what} config name: {name}")
        wrong = config_keys.problem(key, value)
        if wrong is not None:
            return Refusal(ErrorCode.INVALID_CONFIG, wrong)
    return None


def _contradiction(values: Mapping[str, str]) -> Refusal | None:
    for smaller, larger in _LIMIT_OF.items():
        if smaller not in values:
            continue
        limit = values.get(larger, config_keys.TOPIC_KEYS[larger].default)
        assert limit is not None, larger
        low, high = int(values[smaller]), int(limit)
        if high >= 0 and low > high:
            return Refusal(
                ErrorCode.INVALID_CONFIG,
                f"{smaller} ({low}) is larger than {larger} ({high}): lower the one, or raise "
                f"the other.",
            )
    return None


def _check_broker(
    values: Mapping[str, str], changed: set[str], *, is_default: bool
) -> Refusal | None:
    """Keys that we do not know are taken as they are: they may belong to a plugin."""
    for name in sorted(changed):
        key = config_keys.BROKER_KEYS.get(name)
        if key is None:
            continue
        if name in STORE_KEYS:
            return Refusal(
                ErrorCode.INVALID_REQUEST,
                f"{name} cannot be changed for all listeners while the broker runs: set "
                f"listener.name.{{listener}}.{name}, with the listener's name in small letters.",
            )
        if key.update is config_keys.Update.READ_ONLY:
            return Refusal(
                ErrorCode.INVALID_REQUEST,
                f"{name} cannot be changed while the broker runs: change it in server.properties.",
            )
        if key.update is config_keys.Update.PER_BROKER and is_default:
            return Refusal(
                ErrorCode.INVALID_REQUEST,
                f"{name} cannot be a default of all brokers: set it for each broker by its id.",
            )
    for name, value in values.items():
        key = broker_key(name)
        wrong = None if key is None else config_keys.problem(key, value)
        if wrong is not None:
            return Refusal(ErrorCode.INVALID_REQUEST, wrong)
    return None
