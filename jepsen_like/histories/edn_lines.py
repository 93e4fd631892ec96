"""Histories in EDN, in bounded memory: a map an operation, plain or tagged, or one vector of them.

What is simple EDN is JSON but for how it is punctuated: its tokens, with commas between them, are
decoded as JSON at once. A map becomes a list that begins with an empty map. The rest is read as
`edn` reads it, a block of lines at once. A block that ends within a value goes on with the next.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from jepsen_like.histories.edn import EdnError, Keyword, Symbol, Tagged, Unfinished, read_edn
from jepsen_like.histories.history import FORMAT, Header, Lines, MalformedHistory, header_of
from jepsen_like.histories.mappings import decoded, json_of, lines_of, listed, whole_lines

__all__ = ["EDN_HEADER", "plain", "read_edn_lines"]

EDN_HEADER = f"; {FORMAT} "
_VECTOR = re.compile(r"((?:[\s,]|;[^\n]*+)*+)\[")
_TAG = "#jepsen.history.Op{"
_END = r"(?=[\s,\[\]{}]|$)"
_TOKEN = re.compile(
    r"[\[\]{}]"
    rf"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?{_END}"
    r'|:[^\s,;()\[\]{}"\\]+'
    r'|"[^"\\\[\]{}\x00-\x1f]*"'
    r'|[^\s,\[\]{}"]+|"'  # a name, or what is no JSON
)
_PUNCTUATION = {"nil": "null", "{": "[{}", "}": "]", '"': "no string that is simple"}
_OPERATIONS = msgspec.json.Decoder(list[list[Any]])


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
    vector = _VECTOR.match(text)
    if vector is not None:
        text = f"{vector[1]} {text[vector.end() :]}"
    operations, wanted = 0, 0
    while True:
        following = next(blocks, None)
        if following is None and vector is not None:
            text = _without_closing(text)
        if following is None or len(text) >= wanted:
            try:
                found = _values(text, line)
            except EdnError as error:
                if following is None or not isinstance(error, Unfinished):
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


def _without_closing(text: str) -> str:
    text = text.rstrip()
    if not text.endswith("]"):
        raise MalformedHistory("line 1, column 1: ']' is missing")
    return text[:-1]


def _values(text: str, line: int) -> list[Any]:
    """As JSON has them: all at once; one by one if any is not simple, or wrong."""
    try:
        return _simple(text)
    except (IndexError, TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return [plain(value) for value in read_edn(text, line)]


def _simple(text: str) -> list[Any]:
    tokens = _TOKEN.findall(text.replace(_TAG, "{"))
    names = {each: json.dumps(each[1:]) for each in set(tokens) if each[0] == ":"}
    told = ",".join(map((_PUNCTUATION | names).get, tokens, tokens))
    values = _OPERATIONS.decode(f"[{told.replace('[,', '[').replace(',]', ']')}]")
    if not all(type(value[0]) is dict for value in values):
        raise TypeError("a vector")
    if told.count("{}") > len(values):
        for value in values:
            _make_maps(value)
    return list(map(_map, values))


def _map(value: list[Any]) -> dict[Any, Any]:
    """Raises TypeError and ValueError if it is none that is simple."""
    return dict(zip(value[1::2], value[2::2], strict=True))


def _make_maps(value: list[Any]) -> None:
    """Of the lists in it that stand for some: those begin with a map, as nothing else does."""
    for at, each in enumerate(value):
        if type(each) is list and each:
            is_map = type(each[0]) is dict
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
    told = plain(key)
    return tuple(told) if isinstance(told, list) else told
