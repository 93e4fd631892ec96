"""Configs: change some values of a resource, or replace them all.

Resources of a request fail or succeed by themselves.

Source: KIP-226, KIP-339 (incremental), KIP-133 (legacy); Kafka's ConfigurationControlManager.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import partial
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
    results, changes = _alter(image, request.resources, refine)
    response = messages.IncrementalAlterConfigsResponse(responses=results)
    kept = () if request.validate_only else changes
    return Decision(response=response, changes=kept, is_atomic=False)


def decide_alter_configs(
    image: MetadataImage, request: messages.AlterConfigsRequest
) -> Decision[messages.AlterConfigsResponse]:
    """Replace all values of a resource: a key that is not named goes back to its default."""
    results, changes = _alter(image, request.resources, _replaced)
    kept = () if request.validate_only else changes
    return Decision(
        response=messages.AlterConfigsResponse(responses=results), changes=kept, is_atomic=False
    )


def _alter(
    image: MetadataImage, items: Sequence[_Resource], refine: _Refine
) -> tuple[tuple[messages.AlterConfigsResourceResponse, ...], tuple[Change, ...]]:
    """The result for each resource, and what is to be recorded."""
    times = Counter((item.resource_type, item.resource_name) for item in items)
    changes: list[Change] = []
    found: list[Refusal] = []
    for item in items:
        if times[item.resource_type, item.resource_name] > 1:
            message = "Each resource must appear at most once."
            found.append(Refusal(ErrorCode.INVALID_REQUEST, message))
            continue
        decided = _decide(image, item, refine)
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


def _decide(image: MetadataImage, item: _Resource, refine: _Refine) -> list[ConfigRecord] | Refusal:
    """The values that differ; for brokers also those set to the same: they read these again."""
    resource = (item.resource_type, item.resource_name)
    unknown = _unknown_resource(image, resource)
    if unknown is not None:
        return unknown
    now = image.config(*resource)
    values = refine(item, now)
    if isinstance(values, Refusal):
        return values
    is_broker = item.resource_type == ResourceType.BROKER
    wrong = check_config(resource, now, values)
    if wrong is None and is_broker:
        wrong = eligible_leaders.check_min_isr(image, item.resource_name, values)
    if wrong is not None:
        return wrong
    named: set[str] = {entry.name for entry in item.configs}
    return [
        ConfigRecord(
            resource_type=item.resource_type,
            resource_name=item.resource_name,
            name=name,
            value=values.get(name),
        )
        for name in sorted(named | now.keys())
        if now.get(name) != values.get(name) or (is_broker and name in named)
    ]


def _unknown_resource(image: MetadataImage, resource: ConfigResource) -> Refusal | None:
    resource_type, name = resource
    if resource_type == ResourceType.TOPIC:
        if not name:
            message = "Default topic resources are not allowed: set the brokers' default instead."
            return Refusal(ErrorCode.INVALID_REQUEST, message)
        if image.topic(name) is not None:
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


def _null_value(name: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")


def _replaced(item: messages.LegacyResource, _: Mapping[str, str]) -> Values | Refusal:
    """What the item names; of a name that comes again, the last value counts, as in Kafka."""
    values = {}
    for name, value in {entry.name: entry.value for entry in item.configs}.items():
        if value is None:
            return _null_value(name)
        values[name] = value
    return values


def _incremented(
    image: MetadataImage,
    config: ControllerConfig,
    item: messages.AlterConfigsResource,
    now: Mapping[str, str],
) -> Values | Refusal:
    """The values `now`, with each operation of the item done; of a name that comes again, the last
    one counts, as in Kafka. Brokers refuse it."""
    values = dict(now)
    for entry in {entry.name: entry for entry in item.configs}.values():
        name, value = entry.name, entry.value
        if entry.config_operation == Operation.DELETE:
            values.pop(name, None)
            continue
        if value is None:
            return _null_value(name)
        if entry.config_operation != Operation.SET:
            wrong = _list_operation_problem(item.resource_type, entry)
            if wrong is not None:
                return wrong
            present = values[name] if name in values else _default(image, config, item, name)
            value = _edited(present, entry.config_operation, value)
        values[name] = value
    return values


def _list_operation_problem(resource_type: int, entry: messages.AlterableConfig) -> Refusal | None:
    """Why `entry` neither appends nor subtracts: no such operation, or its key is not a list."""
    if entry.config_operation not in (Operation.APPEND, Operation.SUBTRACT):
        message = f"Unknown operation {entry.config_operation} on {entry.name}."
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    key = (configs.keys_of(resource_type) or {}).get(entry.name)
    if key is None or key.type is not ConfigType.LIST:
        verb = Operation(entry.config_operation).name.lower()
        message = f"Cannot {verb} to or from {entry.name}: its type is not LIST. Set it instead."
        return Refusal(ErrorCode.INVALID_CONFIG, message)
    return None


def _default(
    image: MetadataImage, config: ControllerConfig, item: messages.AlterConfigsResource, name: str
) -> str:
    """The value of a known key that holds while the resource has none of its own."""
    if item.resource_type == ResourceType.TOPIC:
        return configs.topic_value(image, item.resource_name, name, static=config.static_configs)
    keys = configs.keys_of(item.resource_type)
    assert keys is not None, item.resource_type
    return keys[name].default or ""


def _edited(present: str, operation: int, value: str) -> str:
    """The list `present` with the elements of `value` appended, or without them."""
    items, given = _items(present), _items(value)
    if operation == Operation.APPEND:
        return ",".join(dict.fromkeys([*items, *given]))
    return ",".join(item for item in items if item not in given)


def _items(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]
