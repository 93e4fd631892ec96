"""DescribeConfigs: the settings of topics and of this broker, with where each value comes from.

Values and levels are `controller.metadata.configs`'; this gives them Kafka's form.

Source: Kafka's ConfigHelper, KIP-226 (sources and synonyms).
"""

from collections.abc import Iterator

from broker.cluster import Cluster
from controller.metadata.config_keys import (
    BROKER_KEYS,
    TOPIC_KEYS,
    ConfigKey,
    ConfigType,
    Update,
)
from controller.metadata.configs import ConfigValue, broker_values, topic_value, topic_values
from controller.metadata.image import CLUSTER_DEFAULT, ResourceType
from wire.errors import ErrorCode
from wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

__all__ = ["describe_configs"]


def describe_configs(cluster: Cluster, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=tuple(
            _describe(cluster, resource, include_synonyms=request.include_synonyms)
            for resource in request.resources
        )
    )


def _describe(
    cluster: Cluster, resource: DescribeConfigsResource, *, include_synonyms: bool
) -> DescribeConfigsResult:
    error, message = _problem(cluster, resource)
    configs: tuple[DescribeConfigsResourceResult, ...] = ()
    if error is ErrorCode.NONE:
        is_topic = resource.resource_type == ResourceType.TOPIC
        found = _topic(cluster, resource.resource_name) if is_topic else _broker(cluster, resource)
        wanted = resource.configuration_keys
        configs = tuple(
            _result(key, values, include_synonyms=include_synonyms)
            for key, values in found
            if values and (not wanted or key.name in wanted)
        )
    return DescribeConfigsResult(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


def _problem(cluster: Cluster, resource: DescribeConfigsResource) -> tuple[ErrorCode, str | None]:
    name = resource.resource_name
    match resource.resource_type:
        case ResourceType.TOPIC:
            if cluster.topic_id(name) is None:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}"
        case ResourceType.BROKER:
            own = str(cluster.config.node_id)
            if name not in (own, CLUSTER_DEFAULT):
                return (
                    ErrorCode.INVALID_REQUEST,
                    f"this is broker {own}, not {name!r}: each broker describes itself",
                )
        case other:
            return ErrorCode.INVALID_REQUEST, f"resources of type {other} have no description here"
    return ErrorCode.NONE, None


Described = Iterator[tuple[ConfigKey, list[ConfigValue]]]


def _topic(cluster: Cluster, topic: str) -> Described:
    for name in sorted(TOPIC_KEYS):
        key = TOPIC_KEYS[name]
        broker_id, static = cluster.config.node_id, cluster.static
        values = list(topic_values(cluster.image, topic, key, broker_id=broker_id, static=static))
        # A synonym may be in another unit (log.retention.hours): show what it comes to.
        value = topic_value(cluster.image, topic, name, broker_id=broker_id, static=static)
        yield key, [ConfigValue(values[0].name, value, values[0].source), *values[1:]]


def _broker(cluster: Cluster, resource: DescribeConfigsResource) -> Described:
    """One broker's settings, or only the dynamic defaults of all (an empty name)."""
    if resource.resource_name == CLUSTER_DEFAULT:
        for name, value in sorted(
            cluster.image.config(ResourceType.BROKER, CLUSTER_DEFAULT).items()
        ):
            values = broker_values(cluster.image, name, broker_id=None, static={})
            yield _broker_key(name), [item for item in values if item.value == value][:1]
        return
    known = {*BROKER_KEYS, *cluster.static}
    for name in sorted(known):
        values = broker_values(
            cluster.image, name, broker_id=cluster.config.node_id, static=cluster.static
        )
        yield _broker_key(name), list(values)


def _broker_key(name: str) -> ConfigKey:
    unknown = ConfigKey(name=name, type=ConfigType.STRING, default=None, update=Update.READ_ONLY)
    return BROKER_KEYS.get(name, unknown)


def _result(
    key: ConfigKey, values: list[ConfigValue], *, include_synonyms: bool
) -> DescribeConfigsResourceResult:
    strongest = values[0]
    is_sensitive = key.type is ConfigType.PASSWORD
    synonyms = values if include_synonyms else []
    return DescribeConfigsResourceResult(
        name=key.name,
        value=None if is_sensitive else strongest.value,
        read_only=key.update is Update.READ_ONLY,
        config_source=strongest.source,
        is_sensitive=is_sensitive,
        synonyms=tuple(
            DescribeConfigsSynonym(
                name=item.name,
                value=None if is_sensitive else item.value,
                source=item.source,
            )
            for item in synonyms
        ),
        config_type=key.type,
        documentation=None,
    )
