"""Lines of a history that are mappings with Jepsen's names, as JSON and EDN have them.

Index and time may be missing: then the lines stand in their order. A name that we do not know is an
extra. A key beside the value (`:key "x"`, as Porcupine's tests have it) goes into the value. An
assignment of Jepsen's that says `:seek-to-beginning? true` has the extra `seek`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, BinaryIO

from jepsen_like.histories.history import Kind, Lines, MalformedHistory, Op, Value

__all__ = ["OF_AN_OP", "decoded", "json_of", "lines_of", "listed", "whole_lines"]

OF_AN_OP = ("index", "time", "type", "process", "f", "value", "error", "key")
_SEEKS_BEGINNING = "seek-to-beginning?"
_BLOCK_BYTES = 1 << 20
_KINDS = frozenset(Kind)
_WHOLE = frozenset({int})
_NAMES = frozenset({int, str})
_TEXT = frozenset({str})
_ERRORS = frozenset({str, type(None)})


def whole_lines(source: BinaryIO) -> Iterator[bytes]:
    """Blocks of a text that end where a line ends."""
    rest = b""
    while more := source.read(max(_BLOCK_BYTES, len(rest))):
        block, newline, rest = (rest + more).rpartition(b"\n")
        if newline:
            yield block + newline
    if rest:
        yield rest


def decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise MalformedHistory(f"not UTF-8: {error}") from error


def json_of(line: str, number: int) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise MalformedHistory(f"line {number}: not JSON: {error}") from error
    except RecursionError as error:
        raise MalformedHistory(f"line {number}: nested too deep") from error


def listed(values: Iterable[Value]) -> list[Value]:
    """A set, in an order that is the same for equal ones: two of them may be compared."""
    return sorted(values, key=_order)


def _order(value: Value) -> str:
    match value:
        case list() | tuple():
            return repr([_order(each) for each in value])
        case dict():
            return repr(sorted(map(_order, value.items())))
        case _:
            return repr(value)


def lines_of(objects: Sequence[dict[str, Value]], first: int) -> Lines:
    """`first`: the number of the first of them, from 0. Raises `MalformedHistory`."""
    for each in objects:
        if not isinstance(each, dict):
            raise MalformedHistory(f"not an operation: {each!r:.100}")
    try:
        lines = _columns(objects, first)
        if _is_plain(lines):
            return lines
    except (KeyError, TypeError):
        pass
    return Lines.of(_op(each, number) for number, each in enumerate(objects, first))


def _columns(objects: Sequence[dict[str, Value]], first: int) -> Lines:
    """A number that is missing here or there is None."""
    index: list[Any] = [each.get("index") for each in objects]
    time_ns: list[Any] = [each.get("time") for each in objects]
    usual = len(OF_AN_OP) - 2  # no error, no key
    for name, numbers in (("index", index), ("time", time_ns)):
        if not any(name in each for each in objects):
            numbers[:] = range(first, first + len(objects))
            usual -= 1
    value = [each["value"] for each in objects]
    extra: list[Mapping[str, Value] | None] = [None] * len(objects)
    for at, each in enumerate(objects):
        if len(each) != usual:
            extra[at] = _extra(each)
            if "key" in each:
                value[at] = [each["key"], value[at]]
    return Lines(
        index,
        time_ns,
        [each["type"] for each in objects],
        [each["process"] for each in objects],
        [each["f"] for each in objects],
        value,
        [each.get("error") for each in objects],
        extra,
    )


def _is_plain(lines: Lines) -> bool:
    return (
        _WHOLE.issuperset(map(type, chain(lines.indexes, lines.time_ns)))
        and _NAMES.issuperset(map(type, lines.process))
        and _TEXT.issuperset(map(type, lines.f))
        and _ERRORS.issuperset(map(type, lines.error))
        and _KINDS.issuperset(lines.kind)
    )


def _op(line: Mapping[str, Value], number: int) -> Op:
    """`number`: of the line, from 0. Raises `MalformedHistory`."""
    try:
        kind, process, f = Kind(line["type"]), line["process"], line["f"]
    except KeyError as missing:
        raise MalformedHistory(f"operation {number}: {missing} is missing") from missing
    except ValueError as error:
        raise MalformedHistory(f"operation {number}: {error}") from error
    index, time_ns = line.get("index", number), line.get("time", number)
    if not isinstance(index, int) or not isinstance(time_ns, int):
        raise MalformedHistory(f"operation {number}: index and time must be whole numbers")
    if not isinstance(process, int | str) or not isinstance(f, str):
        raise MalformedHistory(f"operation {number}: not a process and an f: {process!r}, {f!r}")
    value, error_ = line.get("value"), line.get("error")
    return Op(
        index=index,
        time_ns=time_ns,
        kind=kind,
        process=process,
        f=f,
        value=[line["key"], value] if "key" in line else value,
        error=None if error_ is None else str(error_),
        extra=_extra(line),
    )


def _extra(line: Mapping[str, Value]) -> dict[str, Any]:
    extra = {name: each for name, each in line.items() if name not in OF_AN_OP}
    if extra.get(_SEEKS_BEGINNING):
        extra.setdefault("seek", "beginning")
    return extra
