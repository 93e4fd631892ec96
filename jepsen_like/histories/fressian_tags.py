"""What the usual tags of Fressian stand for, those of Clojure among them: parts to a plain value.

Source: github.com/clojure/data.fressian.
"""

from collections.abc import Hashable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from jepsen_like.histories.fressian import Tags
from jepsen_like.histories.mappings import listed

__all__ = ["TAGS", "as_set"]

_BIGINT_BYTES = 400  # Python itself refuses to print some thousands of digits
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_set(values: list[Any] | None) -> list[Any]:
    return listed(values or ())


def _as_map(items: list[Any]) -> dict[Any, Any]:
    keys, values = items[::2], items[1::2]
    try:
        told = dict(zip(keys, values, strict=True))
    except TypeError:
        told = dict(zip(map(_hashable, keys), values, strict=True))
    if len(told) < len(keys):
        raise ValueError("it has a key twice")
    return told


def _hashable(value: Any) -> Hashable:
    match value:
        case list() | tuple():
            return tuple(map(_hashable, value))
        case dict():
            return frozenset((key, _hashable(of)) for key, of in value.items())
        case _:
            hashable: Hashable = value
            return hashable


def _as_bigint(told: bytes) -> int:
    if len(told) > _BIGINT_BYTES:
        raise ValueError(f"a number of {len(told)} bytes")
    return int.from_bytes(told, signed=True)


def _as_date(milliseconds: int) -> str:
    date = _EPOCH + timedelta(milliseconds=milliseconds)
    return f"{date:%Y-%m-%dT%H:%M:%S}.{date.microsecond // 1000:03}-00:00"


TAGS: Tags = {
    "bigint": (1, _as_bigint),
    "char": (1, chr),
    "inst": (1, _as_date),
    "map": (1, _as_map),
    "record": (2, lambda _, fields: fields),
    "regex": (1, str),
    "set": (1, as_set),
    "uri": (1, str),
    "uuid": (1, lambda told: str(UUID(bytes=told))),
}
