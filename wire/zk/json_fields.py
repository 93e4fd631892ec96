"""Reading a node's JSON with care: a person may have written it.

Whatever is missing or of another kind is `InvalidZnode`, and says which key. Numbers may be texts,
as Kafka writes its timestamps and producer ids.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

__all__ = ["Fields", "InvalidZnode", "Json", "compact", "integers"]

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
_T = TypeVar("_T")


class InvalidZnode(ValueError):
    """The message says what was expected, and where."""


def compact(values: Mapping[str, Json]) -> bytes:
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()


def integers(values: Iterable[int]) -> list[Json]:
    return list(values)


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object, read key by key."""

    values: Mapping[str, object]

    @classmethod
    def of(cls, data: bytes) -> Self:
        try:
            values = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise InvalidZnode(f"no JSON: {data[:50]!r}") from error
        if not isinstance(values, dict):
            raise InvalidZnode(f"no JSON object: {data[:50]!r}")
        return cls(values)

    def integer(self, key: str, default: int | None = None) -> int:
        if default is not None and key not in self.values:
            return default
        return _integer(key, self._value(key))

    def integers(self, key: str) -> tuple[int, ...]:
        return _integers(key, self._value(key))

    def integer_lists(
        self, key: str, *, is_optional: bool = False
    ) -> Mapping[int, tuple[int, ...]]:
        if is_optional and key not in self.values:
            return {}
        return {_integer(key, name): _integers(key, each) for name, each in self._object(key)}

    def text(self, key: str) -> str:
        return _text(key, self._value(key))

    def optional_text(self, key: str) -> str | None:
        return None if self.values.get(key) is None else self.text(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """None at all if the key is missing."""
        listed = self.values.get(key, [])
        if not isinstance(listed, list):
            raise InvalidZnode(f"{key} is no list")
        return tuple(_text(key, each) for each in listed)

    def text_map(self, key: str) -> Mapping[str, str]:
        """Empty if the key is missing."""
        if key not in self.values:
            return {}
        return {name: _text(key, each) for name, each in self._object(key)}

    def objects(self, key: str) -> tuple["Fields", ...]:
        listed = self._value(key)
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise InvalidZnode(f"{key} is no list of objects")
        return tuple(Fields(each) for each in listed)

    def checked(self, key: str, parse: Callable[[str], _T], text: str) -> _T:
        try:
            return parse(text)
        except ValueError as error:
            raise InvalidZnode(f"{key}: {error}") from error

    def _value(self, key: str) -> object:
        if key not in self.values:
            raise InvalidZnode(f"{key} is missing")
        return self.values[key]

    def _object(self, key: str) -> Iterable[tuple[str, object]]:
        value = self._value(key)
        if not isinstance(value, dict):
            raise InvalidZnode(f"{key} is no object")
        return value.items()


def _integer(key: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.removeprefix("-").isdecimal():
        return int(value)
    raise InvalidZnode(f"{key}: {value!r:.50} is no integer")


def _integers(key: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise InvalidZnode(f"{key}: {value!r:.50} is no list of integers")
    return tuple(_integer(key, each) for each in value)


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidZnode(f"{key}: {value!r:.50} is no text")
    return value
