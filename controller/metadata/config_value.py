"""One configuration key: its type and range, and what is wrong with a value of it.

Source: Kafka's ConfigDef, DynamicBrokerConfig.
"""

import re
from dataclasses import dataclass
from enum import Enum, IntEnum

from wire.primitives import INT32_MAX, INT64_MAX

__all__ = ["ConfigKey", "ConfigType", "Synonym", "Update", "description", "problem"]


class ConfigType(IntEnum):
    """As DescribeConfigs has them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Update(Enum):
    """Where a broker's key can be changed while it runs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"  # as the default of all brokers, and for one


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker's key whose value is the default of a topic's; `factor` makes milliseconds of it.

    Of several synonyms, one has a default: the others are not set unless somebody sets them.
    """

    name: str
    factor: int = 1
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    name: str
    type: ConfigType
    default: str | None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()  # for LIST: of each element
    pattern: str = ""  # of each element, as a regular expression
    synonyms: tuple[Synonym, ...] = ()  # of a topic's key, the strongest first
    update: Update = Update.CLUSTER_WIDE
    is_listed: bool = True  # with its default, while nobody has set it


def problem(key: ConfigKey, value: str) -> str | None:
    """What is wrong with a value, as a sentence; None if nothing is."""
    return _PROBLEMS.get(key.type, _text_problem)(key, value)


def description(key: ConfigKey) -> str:
    """What may be set, in words."""
    words = [key.type.name.lower()]
    if key.minimum is not None:
        words.append(f"at least {key.minimum}")
    if key.maximum is not None:
        words.append(f"at most {key.maximum}")
    if key.choices:
        words.append(f"of {', '.join(key.choices)}")
    return f"{', '.join(words)}; {key.update.value}"


_BOTH = ("true", "false")
_BITS_MAX = {ConfigType.SHORT: 2**15 - 1, ConfigType.INT: INT32_MAX, ConfigType.LONG: INT64_MAX}


def _number_problem(key: ConfigKey, value: str) -> str | None:
    number: float
    try:
        if "_" in value:
            raise ValueError(value)  # a number to Python only
        number = float(value) if key.type is ConfigType.DOUBLE else int(value)
    except ValueError:
        return _wrong(key, value, f"it must be a number of type {key.type.name}")
    largest = _BITS_MAX.get(key.type)
    if largest is not None and not -largest - 1 <= number <= largest:
        return _wrong(key, value, f"it must fit into a number of type {key.type.name}")
    if key.minimum is not None and not number >= key.minimum:
        return _wrong(key, value, f"it must be at least {key.minimum}")
    if key.maximum is not None and not number <= key.maximum:
        return _wrong(key, value, f"it must be at most {key.maximum}")
    return None


def _boolean_problem(key: ConfigKey, value: str) -> str | None:
    choices = key.choices or _BOTH
    if value.strip().lower() not in choices:
        return _wrong(key, value, f"write {' or '.join(choices)}")
    return None


def _list_problem(key: ConfigKey, value: str) -> str | None:
    items = value.split(",") if value.strip() else []
    for item in map(str.strip, items):
        if key.choices and item not in key.choices:
            return _wrong(key, value, f"each element is one of {', '.join(key.choices)}")
        if key.pattern and re.fullmatch(key.pattern, item) is None:
            return _wrong(key, value, f"each element has the form {key.pattern}")
    return None


def _text_problem(key: ConfigKey, value: str) -> str | None:
    if key.choices and value not in key.choices:
        return _wrong(key, value, f"choose one of {', '.join(key.choices)}")
    return None


_PROBLEMS = {  # of a type; all others are texts
    ConfigType.BOOLEAN: _boolean_problem,
    ConfigType.LIST: _list_problem,
    **dict.fromkeys((*_BITS_MAX, ConfigType.DOUBLE), _number_problem),
}


def _wrong(key: ConfigKey, value: str, advice: str) -> str:
    return f"Invalid value {value} for configuration {key.name}: {advice}."
