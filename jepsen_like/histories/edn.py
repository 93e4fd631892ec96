"""EDN, the notation that Jepsen keeps histories in: text to values, and back.

    nil true false 1 1.5 "text"     None, bool, int, float, str
    :name  name                     Keyword, Symbol
    [1 2]  (1 2)  #{1 2}  {:a 1}    list, tuple, frozenset, dict
    #tag value                      Tagged; characters are strings of one character

A key of a map, and an element of a set, is made hashable: a vector in it becomes a tuple. Not read:
ratios, and `#:namespace{}` maps. Source: github.com/edn-format/edn.
"""

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = [
    "DEPTH_MAX",
    "DIGITS_MAX",
    "EdnError",
    "Keyword",
    "Symbol",
    "Tagged",
    "Unfinished",
    "read_edn",
    "write_edn",
]

DEPTH_MAX = 100
DIGITS_MAX = 1000  # Python itself refuses some thousands
_SPACE = re.compile(r"(?:[\s,]|;[^\n]*)*")
_TOKEN = re.compile(r"[^\s,;()\[\]{}\"]+")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_NUMBER = re.compile(r"[+-]?\d+(N|(\.\d*)?([eE][+-]?\d+)?M?)$")
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "b": "\b", "f": "\f", "\\": "\\", '"': '"'}
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_UNICODE = re.compile(r"u[0-9a-fA-F]{4}$")
_CHARACTERS = {"newline": "\n", "return": "\r", "space": " ", "tab": "\t"}
_NAMED = {"nil": None, "true": True, "false": False}
_PLAIN_NAME = re.compile(r"[^\s,;()\[\]{}\"\\#:]+$")


class EdnError(ValueError):
    """The message names the line and the column."""


class Unfinished(EdnError):
    """The text ends within a value."""


@dataclass(frozen=True, slots=True)
class Keyword:
    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    name: str


@dataclass(frozen=True, slots=True)
class Tagged:
    tag: str
    value: Any


def read_edn(text: str, line: int = 1, depth: int = 0) -> Iterator[Any]:
    """The values of a text that begins with this line, within so many others. Raises `EdnError`."""
    reading = _Reading(text, line, depth)
    while (value := reading.next()) is not _NOTHING:
        yield value


def write_edn(value: Any) -> str:
    """On one line. Raises `EdnError` for what EDN has no way to say."""
    match value:
        case list():
            return f"[{' '.join(map(write_edn, value))}]"
        case tuple():
            return f"({' '.join(map(write_edn, value))})"
        case set() | frozenset():
            return "#{" + " ".join(sorted(map(write_edn, value))) + "}"
        case dict():
            pairs = (f"{write_edn(key)} {write_edn(of)}" for key, of in value.items())
            return "{" + ", ".join(pairs) + "}"
        case Tagged(tag, tagged):
            return f"#{tag} {write_edn(tagged)}"
        case _:
            return _atom(value)


def _atom(value: Any) -> str:
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return _number(value)
        case str():
            return _quoted(value)
        case Keyword(name) if _PLAIN_NAME.match(name):
            return f":{name}"
        case Symbol(name) if _PLAIN_NAME.match(name):
            return name
        case _:
            raise EdnError(f"EDN cannot say {value!r:.100}")


def _number(value: float) -> str:
    named = {"inf": "##Inf", "-inf": "##-Inf", "nan": "##NaN"}
    return named.get(repr(value), repr(value))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'


_NOTHING = object()


class _Reading:
    def __init__(self, text: str, line: int, depth: int) -> None:
        self._text = text
        self._line = line
        self._at = 0
        self._depth = depth

    def next(self) -> Any:
        """The next value; _NOTHING at the end of the text."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._error(f"nested deeper than {DEPTH_MAX}")
        self._skip_space()
        value = _NOTHING if self._at == len(self._text) else self._value()
        self._depth -= 1
        return value

    def _value(self) -> Any:
        match self._text[self._at]:
            case "[":
                return self._until("]", 1)
            case "(":
                return tuple(self._until(")", 1))
            case "{":
                return self._map()
            case '"':
                return self._string()
            case "#":
                return self._dispatched()
            case ")" | "]" | "}" as closing:
                raise self._error(f"{closing!r} closes nothing")
            case _:
                return self._atom()

    def _until(self, closing: str, opening_length: int) -> list[Any]:
        begin = self._at
        self._at += opening_length
        values: list[Any] = []
        while True:
            self._skip_space()
            if self._text.startswith(closing, self._at):
                self._at += 1
                return values
            value = self.next()
            if value is _NOTHING:
                self._at = begin
                raise self._unfinished(f"{closing!r} is missing")
            values.append(value)

    def _map(self) -> dict[Any, Any]:
        begin = self._at
        values = self._until("}", 1)
        if len(values) % 2:
            self._at = begin
            raise self._error("a map has a key without a value")
        return {_hashable(key): value for key, value in zip(values[::2], values[1::2], strict=True)}

    def _string(self) -> str:
        found = _STRING.match(self._text, self._at)
        if found is None:
            raise self._unfinished("a string has no end")
        text = _ESCAPED.sub(self._unescaped, found[1]) if "\\" in found[1] else found[1]
        self._at = found.end()
        return text

    def _unescaped(self, found: re.Match[str]) -> str:
        escape = found[1]
        if escape[0] == "u" and len(escape) > 1:
            return chr(int(escape[1:], 16))
        if escape not in _ESCAPES:
            raise self._error(f"no escape is \\{escape}")
        return _ESCAPES[escape]

    def _dispatched(self) -> Any:
        text, at = self._text, self._at
        if text.startswith("#{", at):
            return frozenset(map(_hashable, self._until("}", 2)))
        if text.startswith("##", at):
            return self._symbolic()
        self._at += 1
        tag = self._token("a tag")
        value = self.next()
        if value is _NOTHING:
            self._at = at
            raise self._unfinished(f"#{tag} has no value")
        return Tagged(tag, value)

    def _symbolic(self) -> float:
        self._at += 2
        name = self._token("Inf, -Inf or NaN")
        named = {"Inf": float("inf"), "-Inf": float("-inf"), "NaN": float("nan")}
        if name not in named:
            raise self._error(f"no number is ##{name}")
        return named[name]

    def _atom(self) -> Any:
        begin = self._at
        token = self._token("a value")
        if token in _NAMED:
            return _NAMED[token]
        if _NUMBER.match(token):
            return self._number(token)
        kind = token[0]
        if kind == "\\" and len(token) > 1:
            return _character(token[1:])
        if kind == ":" and len(token) > 1:
            return Keyword(token[1:])
        if kind.isdigit() or kind in ":\\":
            self._at = begin
            raise self._error(f"neither a number nor a name: {token:.40}")
        return Symbol(token)

    def _number(self, token: str) -> int | float:
        digits = token.rstrip("NM")
        is_whole = token.endswith("N") or digits.lstrip("+-").isdigit()
        if len(digits) > DIGITS_MAX:
            raise self._error(f"a number of more than {DIGITS_MAX} digits")
        return int(digits) if is_whole else float(digits)

    def _token(self, wanted: str) -> str:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise self._error(f"{wanted} is missing")
        self._at = found.end()
        return found[0]

    def _skip_space(self) -> None:
        """Skips white space, comments, and values that `#_` takes out."""
        while True:
            found = _SPACE.match(self._text, self._at)
            assert found is not None, "it matches nothing too"
            self._at = found.end()
            if not self._text.startswith("#_", self._at):
                return
            self._at += 2
            if self.next() is _NOTHING:
                raise self._unfinished("#_ takes nothing out")

    def _unfinished(self, what: str) -> Unfinished:
        return Unfinished(f"{self._place()}: {what}")

    def _error(self, what: str) -> EdnError:
        return EdnError(f"{self._place()}: {what}")

    def _place(self) -> str:
        before = self._text[: self._at]
        line = self._line + before.count("\n")
        column = self._at - (before.rfind("\n") + 1) + 1
        return f"line {line}, column {column}"


def _character(name: str) -> str:
    if _UNICODE.match(name):
        return chr(int(name[1:], 16))
    return _CHARACTERS.get(name, name[0])


def _hashable(value: Any) -> Hashable:
    match value:
        case list() | tuple():
            return tuple(map(_hashable, value))
        case dict():
            return frozenset((key, _hashable(of)) for key, of in value.items())
        case Tagged(tag, tagged):
            return Tagged(tag, _hashable(tagged))
        case _:
            hashable: Hashable = value
            return hashable
