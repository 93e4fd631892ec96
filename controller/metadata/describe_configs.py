"""DescribeConfigs: the values that hold, where each comes from, and what lies beneath it.

The values themselves are those of `controller.metadata.configs`; this gives them Kafka's form, for
brokers and controllers alike.

Source: KIP-133, KIP-226 (synonyms), KIP-569 (types).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from controller.metadata import configs
from controller.metadata.config_keys import BROKER_KEYS, TOPIC_KEYS, ConfigType, Update
from controller.metadata.configs import ConfigSource, ConfigValue
from controller.metadata.image import CLUSTER_DEFAULT, MetadataImage, ResourceType
from wire.errors import ErrorCode
from wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

__all__ = ["describe_configs", "describe_topic"]

_UNKNOWN_TYPE = 0


def describe_configs(
    image: MetadataImage,
    request: DescribeConfigsRequest,
    *,
    node_id: int,
    static: Mapping[str, str],
) -> DescribeConfigsResponse:
    """The answer of node `node_id`, whose server.properties says `static`."""
    return DescribeConfigsResponse(
        results=tuple(
            _describe(image, resource, request, node_id=node_id, static=static)
            for resource in request.resources
        )
    )


def describe_topic(
    image: MetadataImage,
    topic: str,
    *,
    own: Mapping[str, str] | None = None,
    static: Mapping[str, str],
    broker_id: int | None = None,
) -> list[DescribeConfigsResourceResult]:
    """Every key of a topic. `own` stands for the topic's own values, if it is only being made."""
    found = []
    for key in TOPIC_KEYS.values():
        values = list(configs.topic_values(image, topic, key, broker_id=broker_id, static=static))
        if own is not None and key.name in own:
            values.insert(0, ConfigValue(key.name, own[key.name], ConfigSource.TOPIC))
        value = configs.in_topic_unit(key, values[0])
        found.append(_result(key.name, value, values, key.type, read_only=False))
    return found


def _describe(
    image: MetadataImage,
    resource: DescribeConfigsResource,
    request: DescribeConfigsRequest,
    *,
    node_id: int,
    static: Mapping[str, str],
) -> DescribeConfigsResult:
    name = resource.resource_name
    found: Iterable[DescribeConfigsResourceResult]
    match resource.resource_type:
        case ResourceType.TOPIC:
            if image.topic(name) is None:
                message = f"The topic '{name}' does not exist."
                return _refused(resource, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
            found = describe_topic(image, name, static=static, broker_id=node_id)
        case ResourceType.BROKER if name in (CLUSTER_DEFAULT, str(node_id)):
            found = _describe_broker(image, name, static)
        case ResourceType.BROKER:
            message = f"Broker {node_id} was asked for the configs of '{name}': ask that broker."
            return _refused(resource, ErrorCode.INVALID_REQUEST, message)
        case other:
            message = f"Configs of resource type {other} are not served: ask for topics or brokers."
            return _refused(resource, ErrorCode.INVALID_REQUEST, message)
    wanted = resource.configuration_keys
    kept = [item for item in found if not wanted or item.name in wanted]
    return DescribeConfigsResult(
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=name,
        configs=tuple(
            item if request.include_synonyms else replace(item, synonyms=()) for item in kept
        ),
    )


def _describe_broker(
    image: MetadataImage, name: str, static: Mapping[str, str]
) -> Iterable[DescribeConfigsResourceResult]:
    """A broker's values; of the default of all brokers, only what was set."""
    cluster = image.config(ResourceType.BROKER, CLUSTER_DEFAULT)
    if name == CLUSTER_DEFAULT:
        names = sorted(cluster)
        broker_id, beneath = None, dict[str, str]()
    else:
        own = image.config(ResourceType.BROKER, name)
        names = sorted({*own, *cluster, *static, *BROKER_KEYS})
        broker_id, beneath = int(name), dict(static)
    for key_name in names:
        values = list(configs.broker_values(image, key_name, broker_id=broker_id, static=beneath))
        key = BROKER_KEYS.get(key_name)
        kind = _UNKNOWN_TYPE if key is None else key.type
        read_only = key is not None and key.update is Update.READ_ONLY
        yield _result(key_name, values[0].value, values, kind, read_only=read_only)


def _result(
    name: str, value: str | None, values: list[ConfigValue], kind: int, *, read_only: bool
) -> DescribeConfigsResourceResult:
    # A key that nobody knows may be a plugin's password.
    is_sensitive = kind in (_UNKNOWN_TYPE, ConfigType.PASSWORD)
    return DescribeConfigsResourceResult(
        name=name,
        value=None if is_sensitive else value,
        read_only=read_only,
        config_source=values[0].source,
        is_sensitive=is_sensitive,
        synonyms=tuple(
            DescribeConfigsSynonym(
                name=level.name,
                value=None if is_sensitive else level.value,
                source=level.source,
            )
            for level in values
        ),
        config_type=kind,
        documentation=None,
    )


def _refused(
    resource: DescribeConfigsResource, error_code: ErrorCode, message: str
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error_code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=(),
    )
