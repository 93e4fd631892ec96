"""The base of everything that travels or is stored: immutable values that cost little.

A `msgspec.Struct` is built in a tenth of the time of a frozen dataclass, and its class, of which
every node loads hundreds, in a fortieth. Fields are given by name only; a
class may ask for more: `class TopicPartition(Message, kw_only=False, order=True)`.

The garbage collector does not follow messages (`gc=False`): a value that is built in one step from
values that exist already is never part of a cycle.
"""

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, dataclass_transform, get_args, get_origin

from msgspec import NODEFAULT, Struct, StructMeta
from msgspec.structs import FieldInfo, asdict, fields, replace

__all__ = [
    "REQUIRED",
    "Message",
    "Value",
    "element_type",
    "fields_of",
    "is_array",
    "is_nullable",
    "replace",
    "values_of",
]

REQUIRED = NODEFAULT  # as the default of a field: it has none


class _ValueType(StructMeta):
    """Msgspec does not hand `kw_only` down to subclasses."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **settings: Any
    ) -> "_ValueType":
        settings = {"kw_only": True, **settings}
        made: _ValueType = super().__new__(cls, name, bases, namespace, **settings)
        return made


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Value(Struct, frozen=True, gc=False, metaclass=_ValueType):
    """An immutable value with named fields that is cheap to build."""


class Message(Value):
    """A value of the wire: a request, a record, or a struct within one."""


@cache
def fields_of(message: Any) -> Mapping[str, FieldInfo]:
    """The fields of a class of messages by name, in the order of their declaration."""
    return {field.name: field for field in fields(message)}


def values_of(message: Message) -> dict[str, Any]:
    """The fields with their values, in the order of their declaration. Looks at no nested one."""
    return asdict(message)


def element_type(annotation: Any) -> Any:
    """`X` of `X`, `X | None`, `tuple[X, ...]` and `tuple[X, ...] | None`; X keeps its marks."""
    inner = _some(annotation)
    if get_origin(inner) is tuple:
        inner = _some(get_args(inner)[0])
    return inner


def is_nullable(annotation: Any) -> bool:
    """May the field itself be None?"""
    return NoneType in get_args(_bare(annotation))


def is_array(annotation: Any) -> bool:
    return get_origin(_some(annotation)) is tuple


def _bare(annotation: Any) -> Any:
    """Drops `Annotated`, if the marks belong to the field and not to its type."""
    if get_origin(annotation) is Annotated:
        inner = get_args(annotation)[0]
        if get_origin(inner) in (Union, UnionType, tuple):
            return inner
    return annotation


def _some(annotation: Any) -> Any:
    """`X` of `X | None`."""
    bare = _bare(annotation)
    if get_origin(bare) in (Union, UnionType):
        return next(each for each in get_args(bare) if each is not NoneType)
    return bare
