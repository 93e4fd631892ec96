"""Values of `wire.zk.control_rpc` to msgpack and back: an array of the fields, in their order.

The field list is the format: nothing else is written down about it. A peer of another release may
send fewer fields (the rest have their defaults) or more (the rest are ignored).
"""

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin

import msgpack
from msgspec.structs import astuple

from wire.message import REQUIRED, fields_of
from wire.reading import Reader
from wire.varint import Malformed
from wire.writing import Sink, Writer

__all__ = ["reader_of", "writer_of"]

_Unpack = Callable[[Any], Any]


def writer_of(message: type) -> Writer:
    def write(out: Sink, body: Any) -> None:
        assert type(body) is message, (type(body), message)
        out += msgpack.packb(_plain(body))

    return write


def reader_of(message: type) -> Reader:
    """Raises Malformed for what is no such message."""
    unpack = _unpacker(message)

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        try:
            return unpack(msgpack.unpackb(buffer[position:])), len(buffer)
        except (TypeError, ValueError, msgpack.UnpackException) as error:
            raise Malformed(f"{message.__name__}: {error}") from error

    return read


def _plain(value: Any) -> Any:
    match value:
        case IntEnum():
            return int(value)
        case tuple():
            return [_plain(element) for element in value]
        case None | bool() | int() | str():
            return value
        case _:
            return list(map(_plain, astuple(value)))


@cache
def _unpacker(kind: Any) -> _Unpack:
    """For a field's type: a number, a string, an error code, a value, a tuple, or one and None."""
    if get_origin(kind) is tuple:
        return _tuple_unpacker(_unpacker(get_args(kind)[0]))
    members = get_args(kind)
    if NoneType in members:
        some = _unpacker(next(each for each in members if each is not NoneType))
        return lambda value: None if value is None else some(value)
    if issubclass(kind, IntEnum):
        return lambda value: kind(value)
    if kind in (bool, int, str):
        return _scalar_unpacker(kind)
    return _value_unpacker(kind)


def _scalar_unpacker(kind: type) -> _Unpack:
    def unpack(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{value!r} is no {kind.__name__}")
        return value

    return unpack


def _tuple_unpacker(element: _Unpack) -> _Unpack:
    def unpack(value: Any) -> Any:
        if not isinstance(value, list):
            raise TypeError(f"{value!r} is no array")
        return tuple(element(each) for each in value)

    return unpack


def _value_unpacker(kind: Any) -> _Unpack:
    known = [(field, _unpacker(field.type)) for field in fields_of(kind).values()]
    required = sum(field.default is REQUIRED for field, _ in known)

    def unpack(value: Any) -> Any:
        if not isinstance(value, list) or len(value) < required:
            raise TypeError(f"{value!r} is no {kind.__name__}")
        given = zip(known, value, strict=False)
        return kind(**{field.name: unpack_field(each) for (field, unpack_field), each in given})

    return unpack
