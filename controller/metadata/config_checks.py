"""May a resource have these configs? The first thing that is wrong names the error.

Source: Kafka's ControllerConfigurationValidator, LogConfig, DynamicBrokerConfig, GroupConfig and
ClientMetricsConfigs.
"""

from collections.abc import Mapping
from dataclasses import replace

from controller.metadata.config_keys import (
    BROKER_KEYS,
    CLIENT_METRICS_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
    ConfigKey,
    Update,
    problem,
)
from controller.metadata.configs import Refusal
from controller.metadata.delta import ConfigResource
from controller.metadata.image import CLUSTER_DEFAULT, ResourceType
from wire.errors import ErrorCode

__all__ = ["check_config", "check_topic_config"]

_ORDERED = (  # topic keys of which the first may not be larger than the second
    ("min.compaction.lag.ms", "max.compaction.lag.ms"),
    ("local.retention.ms", "retention.ms"),
    ("local.retention.bytes", "retention.bytes"),
)


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
            refusal = _check_values(values, CLIENT_METRICS_KEYS, "client metrics")
            return refusal and replace(refusal, error_code=ErrorCode.INVALID_REQUEST)
        case ResourceType.GROUP:
            return _check_values(values, GROUP_KEYS, "group")
        case other:
            raise AssertionError(f"no configs of resource type {other}")


def check_topic_config(values: Mapping[str, str | None]) -> Refusal | None:
    """Is this a configuration that a topic may have, as a whole?"""
    empty = sorted(name for name, value in values.items() if value is None)
    if empty:
        names = ", ".join(empty)
        return Refusal(ErrorCode.INVALID_CONFIG, f"Topic configs without a value: {names}.")
    return _check_topic({name: value for name, value in values.items() if value is not None})


def _check_topic(values: Mapping[str, str]) -> Refusal | None:
    return _check_values(values, TOPIC_KEYS, "topic") or _contradiction(values)


def _check_values(
    values: Mapping[str, str], keys: Mapping[str, ConfigKey], of_what: str
) -> Refusal | None:
    for name, value in values.items():
        key = keys.get(name)
        if key is None:
            return Refusal(ErrorCode.INVALID_CONFIG, f"Unknown {of_what} config name: {name}")
        wrong = problem(key, value)
        if wrong is not None:
            return Refusal(ErrorCode.INVALID_CONFIG, wrong)
    return None


def _contradiction(values: Mapping[str, str]) -> Refusal | None:
    """Two values that make no sense together."""
    for smaller, larger in _ORDERED:
        if smaller not in values:
            continue
        low, high = int(values[smaller]), _number_or_default(values, larger)
        if high >= 0 and low > high:
            return Refusal(
                ErrorCode.INVALID_CONFIG,
                f"{smaller} ({low}) is larger than {larger} ({high}): lower the one, or raise "
                f"the other.",
            )
    return None


def _number_or_default(values: Mapping[str, str], name: str) -> int:
    value = values.get(name, TOPIC_KEYS[name].default)
    assert value is not None, name
    return int(value)


def _check_broker(
    values: Mapping[str, str], changed: set[str], *, is_default: bool
) -> Refusal | None:
    """Keys that we do not know are taken as they are: they may belong to a plugin."""
    for name in sorted(changed):
        key = BROKER_KEYS.get(name)
        if key is None:
            continue
        if key.update is Update.READ_ONLY:
            return Refusal(
                ErrorCode.INVALID_REQUEST,
                f"{name} cannot be changed while the broker runs: change it in server.properties.",
            )
        if key.update is Update.PER_BROKER and is_default:
            return Refusal(
                ErrorCode.INVALID_REQUEST,
                f"{name} cannot be a default of all brokers: set it for each broker by its id.",
            )
    for name, value in values.items():
        key = BROKER_KEYS.get(name)
        wrong = None if key is None else problem(key, value)
        if wrong is not None:
            return Refusal(ErrorCode.INVALID_REQUEST, wrong)
    return None
