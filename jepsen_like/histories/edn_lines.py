"""Histories in EDN, in bounded memory: a map an operation, plain or tagged, or one vector of them.

What is simple EDN is JSON but for how it is punctuated: its tokens, with commas between them, are
decoded as JSON at once. A map becomes a list between two empty maps. The rest is read as `edn`
reads it, a block of lines at once. A block that ends within a value goes on with the next.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec
import numpy as np

from jepsen_like.histories.edn import (
    DEPTH_MAX,
    DIGITS_MAX,
    EdnError,
    Keyword,
    Symbol,
    Tagged,
    Unfinished,
    read_edn,
)
from jepsen_like.histories.history import FORMAT, Header, Lines, MalformedHistory, header_of
from jepsen_like.histories.mappings import decoded, json_of, lines_of, listed, whole_lines

__all__ = ["EDN_HEADER", "plain", "read_edn_lines"]

EDN_HEADER = f"; {FORMAT} "
_SPACE = re.compile(r"(?:[\s,]|;[^\n]*)*")
_TAG = "#jepsen.history.Op{"
_END = r"(?=[\s,\[\]{}]|$)"
_TOKEN = re.compile(
    r"[\[\]{}]"
    rf"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?{_END}"
    r'|:[^\s,;()\[\]{}"\\]+'
    r'|"[^"\\\[\]{}\x00-\x1f]*"'
    r'|[^\s,:\[\]{}"][^\s,\[\]{}"]*|[":]'  # a name, or what is no JSON
)
# A map begins and ends as no vector does. What is null in JSON is no more than a name in EDN.
_PUNCTUATION = {"nil": "null", "{": "[{}", "}": "{}]", "null": "a name"}
_ODD = {'"': "an odd string", ":": "an odd keyword"}
_OPERATIONS = msgspec.json.Decoder(list[list[Any]])
_NOT_SIMPLE = (IndexError, TypeError, ValueError, RecursionError, msgspec.MsgspecError)


def read_edn_lines(source: BinaryIO) -> tuple[Header | None, Iterator[Lines]]:
    """Raises `MalformedHistory`, also while the lines are read."""
    blocks = map(decoded, whole_lines(source))
    text = next(blocks, "")
    if not text.startswith(EDN_HEADER):
        return None, _read(text, blocks, 1)
    first, _, text = text.partition("\n")
    return header_of(json_of(first.removeprefix(EDN_HEADER), 1)), _read(text, blocks, 2)


def _read(text: str, blocks: Iterator[str], line: int) -> Iterator[Lines]:
    """`line`: the number of the first."""
    while (begin := _first(text)) == len(text) and (more := next(blocks, "")):
        text += more
    is_vector = text.startswith("[", begin)
    if is_vector:
        text = f"{text[:begin]} {text[begin + 1 :]}"
    operations, wanted = 0, 0
    while True:
        following = next(blocks, None)
        if following is None or len(text) >= wanted:
            try:
                if following is None and is_vector:
                    found = _last_values(text, line)
                else:
                    found = _values(text, line, depth=int(is_vector))
            except EdnError as error:  # the bracket that closes a vector may be in this block
                may_go_on = is_vector or isinstance(error, Unfinished)
                if following is None or not may_go_on:
                    raise MalformedHistory(str(error)) from error
                wanted = 2 * len(text)  # tried again and again, it shall not take forever
            else:
                yield lines_of(found, operations)
                operations += len(found)
                line += text.count("\n")
                text, wanted = "", 0
        if following is None:
            return
        text += following


def _first(text: str) -> int:
    """Where the first value begins."""
    space = _SPACE.match(text)
    return space.end() if space else 0


def _values(text: str, line: int, *, depth: int) -> list[Any]:
    """As JSON has them: all at once; one by one if any is not simple, or wrong."""
    try:
        return _simple(text)
    except _NOT_SIMPLE:
        return [plain(value) for value in read_edn(text, line, depth)]


def _last_values(text: str, line: int) -> list[Any]:
    """Those of the rest of a vector."""
    closed = text.rstrip()
    if closed.endswith("]"):
        try:
            return _simple(closed[:-1])
        except _NOT_SIMPLE:
            pass
    values, *others = read_edn(f"[{text}", line)
    if others:
        raise MalformedHistory(f"a vector is not all there is: {others[0]!r:.100} follows")
    return [plain(value) for value in values]


def _simple(text: str) -> list[Any]:
    tokens = _TOKEN.findall(text.replace(_TAG, "{"))
    distinct = set(tokens)
    if max(map(len, distinct), default=0) > DIGITS_MAX:
        raise ValueError("it may be a number that is too long")
    names = {each: json.dumps(each[1:]) for each in distinct if each[0] == ":"}
    told = ",".join(map((_PUNCTUATION | names | _ODD).get, tokens, tokens))
    if _depth(told) > DEPTH_MAX // 2:
        raise ValueError("it may be nested too deep")
    values = _OPERATIONS.decode(f"[{told.replace('[,', '[').replace(',]', ']')}]")
    if told.count("{}") > 2 * len(values):
        for value in values:
            _make_maps(value)
    return list(map(_map, values))


def _depth(told: str) -> int:
    """No text in it has a bracket."""
    text = np.frombuffer(told.encode(), np.uint8)
    steps = (text == ord("[")).astype(np.int8) - (text == ord("]"))
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def _map(value: list[Any]) -> dict[Any, Any]:
    """Raises IndexError, TypeError or ValueError if it is none that is simple."""
    if value[0] != {} or value[-1] != {}:
        raise TypeError("no map")
    found = dict(zip(value[1:-1:2], value[2:-1:2], strict=True))
    if 2 * len(found) != len(value) - 2:
        raise ValueError("a key comes twice")
    return found


def _make_maps(value: list[Any]) -> None:
    """Of the lists in it that stand for some: those begin and end with one, and nothing else does.

    Raises TypeError if brackets do not match.
    """
    for at, each in enumerate(value):
        if type(each) is list and each:
            is_map = type(each[0]) is dict
            if is_map is not (type(each[-1]) is dict):
                raise TypeError("brackets do not match")
            _make_maps(each)
            if is_map:
                value[at] = _map(each)


def plain(value: Any) -> Any:
    """Names become strings, whatever was put around values is taken off, sequences are lists."""
    match value:
        case Keyword(name) | Symbol(name):
            return name
        case Tagged(_, tagged):
            return plain(tagged)
        case list() | tuple():
            return [plain(each) for each in value]
        case frozenset():
            return listed(map(plain, value))
        case dict():
            return {_plain_key(key): plain(of) for key, of in value.items()}
        case _:
            return value


def _plain_key(key: Any) -> Any:
    return _hashable(plain(key))


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
