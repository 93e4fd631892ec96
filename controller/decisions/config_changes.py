"""Configs: change some values of a resource, or replace them all.

Resources of a request fail or succeed by themselves.

Source: KIP-226, KIP-339 (incremental), KIP-133 (legacy); Kafka's ConfigurationControlManager.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from operator import attrgetter
from typing import Any

from controller.config import ControllerConfig
from controller.decisions import eligible_leaders
from controller.decisions.decision import Decision, limited
from controller.metadata import configs
from controller.metadata.changes import Change
from controller.metadata.config_keys import ConfigType
from controller.metadata.configs import NO_ERROR, Refusal, check_config
from controller.metadata.delta import ConfigResource
from controller.metadata.image import CLUSTER_DEFAULT, MetadataImage, ResourceType
from wire.errors import ErrorCode
from wire.messages import configs as messages
from wire.metadata_records import ConfigRecord

__all__ = ["Operation", "decide_alter_configs", "decide_incremental_alter_configs"]

_name_of = attrgetter("name")
_BROKER_ID_DIGITS_MAX = 10  # an int32; Python refuses to read thousands of them


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


Values = dict[str, str]
_Resource = messages.LegacyResource | messages.AlterConfigsResource
_Refine = Callable[[Any, Mapping[str, str]], Values | Refusal]  # a resource, its present values


def decide_incremental_alter_configs(
    image: MetadataImage, request: messages.IncrementalAlterConfigsRequest, config: ControllerConfig
) -> Decision[messages.IncrementalAlterConfigsResponse]:
    """Set, delete, append to or subtract from single values."""
    refine = partial(_incremented, image, config)
    results, changes = _alter(image, request.resources, refine, replaces=False)
    response = messages.IncrementalAlterConfigsResponse(responses=results)
    kept = () if request.validate_only else changes
    return Decision(response=response, changes=kept, is_atomic=False)


def decide_alter_configs(
    image: MetadataImage, request: messages.AlterConfigsRequest
) -> Decision[messages.AlterConfigsResponse]:
    """Replace all values of a resource: a key that is not named goes back to its default."""
    results, changes = _alter(image, request.resources, _replaced, replaces=True)
    kept = () if request.validate_only else changes
    return Decision(
        response=messages.AlterConfigsResponse(responses=results), changes=kept, is_atomic=False
    )


def _alter(
    image: MetadataImage, items: Sequence[_Resource], refine: _Refine, *, replaces: bool
) -> tuple[tuple[messages.AlterConfigsResourceResponse, ...], tuple[Change, ...]]:
    """The result for each resource, and what is to be recorded.

    Without `replaces`, `refine` changes no other values than the item names.
    """
    repeated = _repeated([(item.resource_type, item.resource_name) for item in items])
    changes: list[Change] = []
    found: list[Refusal] = []
    for item in items:
        if repeated and (item.resource_type, item.resource_name) in repeated:
            message = "Each resource must appear at most once."
            found.append(Refusal(ErrorCode.INVALID_REQUEST, message))
            continue
        decided = _decide(image, item, refine, replaces=replaces)
        if isinstance(decided, Refusal):
            found.append(decided)
        else:
            found.append(NO_ERROR)
            changes += decided
    found, changes = limited(found, changes)
    results = [
        messages.AlterConfigsResourceResponse(
            error_code=each.error_code,
            error_message=each.message,
            resource_type=item.resource_type,
            resource_name=item.resource_name,
        )
        for item, each in zip(items, found, strict=True)
    ]
    return tuple(results), (*eligible_leaders.forgotten(image, changes), *changes)


def _repeated(resources: list[ConfigResource]) -> set[ConfigResource]:
    if len(set(resources)) == len(resources):
        return set()
    return {resource for resource, times in Counter(resources).items() if times > 1}


def _decide(
    image: MetadataImage, item: _Resource, refine: _Refine, *, replaces: bool
) -> list[ConfigRecord] | Refusal:
    """The values that differ; for brokers also those set to the same: they read these again."""
    resource = (item.resource_type, item.resource_name)
    unknown = unknown_resource(image, resource)
    if unknown is not None:
        return unknown
    now: Mapping[str, str] = image.configs.get(resource, {})
    values = refine(item, now)
    if isinstance(values, Refusal):
        return values
    is_broker = item.resource_type == ResourceType.BROKER
    wrong = check_config(resource, now, values)
    if wrong is None and is_broker:
        wrong = eligible_leaders.check_min_isr(image, item.resource_name, values)
    if wrong is not None:
        return wrong
    changes = []
    named = dict.fromkeys(map(_name_of, item.configs))
    for name in sorted({**named, **now} if replaces else named):
        value = values.get(name)
        if now.get(name) != value or (is_broker and name in named):
            changes.append(
                ConfigRecord(
                    resource_type=item.resource_type,
                    resource_name=item.resource_name,
                    name=name,
                    value=value,
                )
            )
    return changes


def unknown_resource(image: MetadataImage, resource: ConfigResource) -> Refusal | None:
    resource_type, name = resource
    if resource_type == ResourceType.TOPIC:
        if not name:
            message = "Default topic resources are not allowed: set the brokers' default instead."
            return Refusal(ErrorCode.INVALID_REQUEST, message)
        if name in image.topics.by_name:
            return None
        message = f"The topic '{name}' does not exist."
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if resource_type in (ResourceType.CLIENT_METRICS, ResourceType.GROUP):
        message = "Defaults of all of them are not allowed here: name one."
        return None if name else Refusal(ErrorCode.INVALID_REQUEST, message)
    if resource_type != ResourceType.BROKER:
        message = f"Configs of resource type {resource_type} cannot be changed here."
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    return None if name == CLUSTER_DEFAULT else _unknown_broker(image, name)


def _unknown_broker(image: MetadataImage, name: str) -> Refusal | None:
    if not name.isdecimal() or len(name) > _BROKER_ID_DIGITS_MAX:
        message = f"Unable to parse '{name}' as a broker id: it must be a number."
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    if int(name) not in image.brokers and int(name) not in image.controllers:
        message = f"No broker with id {name} found."
        return Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    return None


def _replaced(item: messages.LegacyResource, _: Mapping[str, str]) -> Values | Refusal:
    values = {}
    for key, value in {entry.name: entry.value for entry in item.configs}.items():
        if value is None:
            message = f"Null value not supported for : {key}"
            return Refusal(ErrorCode.INVALID_REQUEST, message)
        values[key] = value
    return values


def _incremented(
    image: MetadataImage,
    config: ControllerConfig,
    item: messages.AlterConfigsResource,
    now: Mapping[str, str],
) -> Values | Refusal:
    if len(set(map(_name_of, item.configs))) < len(item.configs):
        return Refusal(ErrorCode.INVALID_REQUEST, "Each config key must appear at most once.")
    values = dict(now)
    for entry in item.configs:
        operation, value = entry.config_operation, entry.value
        if operation == Operation.DELETE:
            values.pop(entry.name, None)
        elif value is None:
            message = f"Null value not supported for : {entry.name}"
            return Refusal(ErrorCode.INVALID_REQUEST, message)
        elif operation == Operation.SET:
            values[entry.name] = value
        else:
            items = _operated(image, config, item, entry, _items(value), now)
            if isinstance(items, Refusal):
                return items
            values[entry.name] = ",".join(items)
    return values


def _operated(
    image: MetadataImage,
    config: ControllerConfig,
    item: messages.AlterConfigsResource,
    entry: messages.AlterableConfig,
    given: list[str],
    now: Mapping[str, str],
) -> Iterable[str] | Refusal:
    """The elements of a list to which those `given` were appended, or without them."""
    if entry.config_operation not in (Operation.APPEND, Operation.SUBTRACT):
        message = f"Unknown operation {entry.config_operation} on {entry.name}."
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    is_topic = item.resource_type == ResourceType.TOPIC
    key = (configs.keys_of(item.resource_type) or {}).get(entry.name)
    if key is None or key.type is not ConfigType.LIST:
        verb = Operation(entry.config_operation).name.lower()
        message = f"Cannot {verb} to or from {entry.name}: its type is not LIST. Set it instead."
        return Refusal(ErrorCode.INVALID_CONFIG, message)
    base = now.get(entry.name)
    if base is None:
        static = config.static_configs
        base = (
            configs.topic_value(image, item.resource_name, entry.name, static=static)
            if is_topic
            else key.default or ""
        )
    if entry.config_operation == Operation.APPEND:
        return dict.fromkeys([*_items(base), *given])
    return [value for value in _items(base) if value not in given]


def _items(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]
