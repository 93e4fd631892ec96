"""DescribeConfigs: the values that hold, where each comes from, and what lies beneath it.

The values themselves are those of `controller.metadata.configs`; this gives them Kafka's form, for
brokers and controllers alike.

Source: KIP-133, KIP-226 (synonyms), KIP-569 (types); Kafka's ConfigHelper.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile

from controller.metadata import config_keys, configs
from controller.metadata.configs import NO_ERROR, ConfigSource, ConfigValue, Refusal
from controller.metadata.image import CLUSTER_DEFAULT, MetadataImage, ResourceType
from controller.metadata.topics import topic_name_problem
from wire.errors import ErrorCode
from wire.message import replace as replace_message
from wire.messages import configs as messages

__all__ = ["describe_configs", "describe_topic", "list_config_resources"]

_UNKNOWN_TYPE = 0
_Described = Iterable[messages.DescribeConfigsResourceResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Levels:
    """What lies beneath a resource's own configs: those of a broker, as one node sees them."""

    image: MetadataImage
    broker_id: int | None
    static: Mapping[str, str]

    def synonyms(self, name: str) -> list[ConfigValue]:
        """Every value that has a say in that of a broker's key, the strongest first.

        As Kafka's, the list begins with the key itself: what is stronger is not shown.
        """
        names = config_keys.family(name)
        values = [
            *configs.broker_levels(self.image, names, broker_id=self.broker_id, static=self.static),
            *_defaults(names),
        ]
        return list(dropwhile(lambda value: value.name != name, values))


def _defaults(names: Sequence[str]) -> Iterator[ConfigValue]:
    for name in names:
        key = config_keys.BROKER_KEYS.get(name)
        if key is not None and key.default is not None:
            yield ConfigValue(name, key.default, ConfigSource.DEFAULT)


def describe_configs(
    image: MetadataImage,
    request: messages.DescribeConfigsRequest,
    *,
    node_id: int,
    static: Mapping[str, str],
) -> messages.DescribeConfigsResponse:
    """The answer of node `node_id`, whose server.properties says `static`."""
    levels = _Levels(image=image, broker_id=node_id, static=static)
    return messages.DescribeConfigsResponse(
        results=tuple(
            _answer(resource, request, _describe(levels, node_id, resource))
            for resource in request.resources
        )
    )


def _answer(
    resource: messages.DescribeConfigsResource,
    request: messages.DescribeConfigsRequest,
    found: _Described | Refusal,
) -> messages.DescribeConfigsResult:
    which = {"resource_type": resource.resource_type, "resource_name": resource.resource_name}
    if isinstance(found, Refusal):
        return found.told(messages.DescribeConfigsResult, **which)
    wanted = resource.configuration_keys
    lacking: dict[str, object] = {} if request.include_synonyms else {"synonyms": ()}
    if not request.include_documentation:
        lacking["documentation"] = None
    shown = (item for item in found if not wanted or item.name in wanted)
    configs = tuple(replace_message(item, **lacking) for item in shown)
    return NO_ERROR.told(messages.DescribeConfigsResult, configs=configs, **which)


def _describe(
    levels: _Levels, node_id: int, resource: messages.DescribeConfigsResource
) -> _Described | Refusal:
    image, name = levels.image, resource.resource_name
    match resource.resource_type:
        case ResourceType.TOPIC:
            illegal = topic_name_problem(name)
            if illegal is not None:
                return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, illegal)
            if image.topic(name) is None:
                message = f"The topic '{name}' does not exist."
                return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
            return _topic(levels, name, image.config(ResourceType.TOPIC, name))
        case ResourceType.BROKER:
            if name == CLUSTER_DEFAULT:
                return _default_of_brokers(replace(levels, broker_id=None, static={}))
            if name == str(node_id):
                return _broker(levels, name)
            message = f"Broker {node_id} was asked for the configs of '{name}': ask that broker."
        case ResourceType.CLIENT_METRICS if name:
            metrics = ResourceType.CLIENT_METRICS, name, config_keys.CLIENT_METRICS_KEYS
            return _own(levels, *metrics, ConfigSource.CLIENT_METRICS)
        case ResourceType.GROUP if name:
            group = ResourceType.GROUP, name, config_keys.GROUP_KEYS
            return _own(levels, *group, ConfigSource.GROUP)
        case other:
            message = f"Configs of resource type {other}, '{name}', are not served."
    return Refusal(ErrorCode.INVALID_REQUEST, message)


def list_config_resources(
    image: MetadataImage, request: messages.ListConfigResourcesRequest
) -> messages.ListConfigResourcesResponse:
    """The resources that can be described: topics, brokers, and all others that have configs."""
    asked = request.resource_types or tuple(ResourceType)
    if any(kind not in list(ResourceType) for kind in asked):
        return messages.ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    names: dict[int, list[str]] = {kind: [] for kind in ResourceType}
    for kind, name in image.configs:
        if kind in (ResourceType.CLIENT_METRICS, ResourceType.GROUP):
            names[kind].append(name)
    names[ResourceType.TOPIC] = list(image.topics.by_name)
    names[ResourceType.BROKER] = [str(broker_id) for broker_id in image.brokers]
    return messages.ListConfigResourcesResponse(
        config_resources=tuple(
            messages.ConfigResource(resource_name=name, resource_type=kind)
            for kind in dict.fromkeys(asked)
            for name in sorted(names[kind])
        )
    )


# --- one resource -----------------------------------------------------------------------------


def describe_topic(
    image: MetadataImage, topic: str, *, own: Mapping[str, str], static: Mapping[str, str]
) -> list[messages.DescribeConfigsResourceResult]:
    """Every key of a topic with the configs `own`, which may be only in the making."""
    return list(_topic(_Levels(image=image, broker_id=None, static=static), topic, own))


def _topic(levels: _Levels, topic: str, own: Mapping[str, str]) -> _Described:
    for key in config_keys.TOPIC_KEYS.values():
        synonyms = levels.synonyms(key.synonyms[0].name) if key.synonyms else []
        value = own.get(key.name)
        if value is None:
            value = configs.topic_value(
                levels.image, topic, key.name, broker_id=levels.broker_id, static=levels.static
            )
        else:
            synonyms.insert(0, ConfigValue(key.name, value, ConfigSource.TOPIC))
        yield _result(key.name, value, synonyms, key, read_only=False)


def _own(
    levels: _Levels,
    resource_type: ResourceType,
    name: str,
    keys: Mapping[str, config_keys.ConfigKey],
    source: ConfigSource,
) -> _Described:
    """A key without a synonym has no default that anybody could set."""
    own = levels.image.config(resource_type, name)
    for key in keys.values():
        names = [synonym.name for synonym in key.synonyms]
        found = [
            *configs.broker_levels(
                levels.image, names, broker_id=levels.broker_id, static=levels.static
            ),
            *(ConfigValue(each, key.default, ConfigSource.DEFAULT) for each in names),
        ]
        if key.name in own:
            found.insert(0, ConfigValue(key.name, own[key.name], source))
        yield _result(key.name, found[0].value if found else key.default, found, key)


def _broker(levels: _Levels, name: str) -> _Described:
    image = levels.image
    own = image.config(ResourceType.BROKER, name)
    cluster = image.config(ResourceType.BROKER, CLUSTER_DEFAULT)
    listed = (key.name for key in config_keys.BROKER_KEYS.values() if key.is_listed)
    for key_name in sorted({*own, *cluster, *levels.static, *listed}):
        key = configs.broker_key(key_name)
        synonyms = levels.synonyms(key_name)
        value = synonyms[0].value if synonyms else None
        read_only = key is None or key.update is config_keys.Update.READ_ONLY
        yield _result(key_name, value, synonyms, key, read_only=read_only)


def _default_of_brokers(levels: _Levels) -> _Described:
    """Only what was set: the values beneath it differ from broker to broker."""
    cluster = levels.image.config(ResourceType.BROKER, CLUSTER_DEFAULT)
    for name in sorted(cluster):
        found = ConfigValue(name, cluster[name], ConfigSource.DYNAMIC_DEFAULT_BROKER)
        yield _result(name, cluster[name], [found], configs.broker_key(name))


# --- one value ----------------------------------------------------------------------------------


def _result(
    name: str,
    value: str | None,
    synonyms: Sequence[ConfigValue],
    key: config_keys.ConfigKey | None,
    *,
    read_only: bool = False,
) -> messages.DescribeConfigsResourceResult:
    """The strongest synonym says where the value comes from."""
    kind = _UNKNOWN_TYPE if key is None else key.type
    # A key that nobody knows may be a plugin's password.
    is_sensitive = kind in (_UNKNOWN_TYPE, config_keys.ConfigType.PASSWORD)
    return messages.DescribeConfigsResourceResult(
        name=name,
        value=None if is_sensitive else _shown(value, kind),
        read_only=read_only,
        config_source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        is_sensitive=is_sensitive,
        synonyms=tuple(
            messages.DescribeConfigsSynonym(
                name=level.name,
                value=None if is_sensitive else _shown(level.value, kind),
                source=level.source,
            )
            for level in synonyms
        ),
        config_type=kind,
        documentation=None if key is None else config_keys.description(key),
    )


def _shown(value: str | None, kind: int) -> str | None:
    """A list shows once what it names twice (KIP-1161; ConfigDef.parseValue)."""
    if value is None or kind != config_keys.ConfigType.LIST:
        return value
    return ",".join(dict.fromkeys(each.strip() for each in value.split(",")))
