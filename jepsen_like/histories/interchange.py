"""Histories to and from what other checkers read: EDN, JSON lines, console logs.

    .msgpack   our own frames (`jepsen_like.histories.history`)
    .edn .txt  a map an operation, plain or tagged `#jepsen.history.Op`
    .jsonl     an object an operation
    .log       the console output of Jepsen

What we write begins with our header: a comment in EDN, an object of its own in JSON lines. So a
history that went out comes back as it was. In EDN kinds, fs and the names of extras are keywords;
in values only the names of steps are (`[:send "orders-0" [3 17]]`), as Jepsen's checkers want them.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jepsen_like.histories.edn import EdnError, Keyword, Symbol, Tagged, read_edn, write_edn
from jepsen_like.histories.foreign import OF_AN_OP, console_lines, history_of
from jepsen_like.histories.history import (
    FORMAT,
    History,
    MalformedHistory,
    Op,
    Value,
    header_as_value,
    header_of,
    read_history,
)

__all__ = ["READERS", "edn_lines", "is_exported", "jsonl_lines", "read_as"]

_EDN_HEADER = f"; {FORMAT} "
_STEPS = ("send", "poll", "txn")


def read_as(content: bytes, suffix: str, workload: str | None = None) -> History:
    """`suffix` says what it is (".edn"); `workload` what it shall be judged as.

    Raises `MalformedHistory`.
    """
    read = READERS.get(suffix)
    if read is None:
        raise MalformedHistory(
            f"{suffix or 'no suffix'}: histories end with {', '.join(sorted(READERS))}"
        )
    return read(content, workload)


def edn_lines(history: History) -> Iterator[str]:
    yield _EDN_HEADER + json.dumps(header_as_value(history.header))
    for op in history.ops:
        yield write_edn(
            {Keyword(name): _as_keyword(name, value, op.f) for name, value in _fields(op).items()}
        )


def jsonl_lines(history: History) -> Iterator[str]:
    yield json.dumps(header_as_value(history.header))
    for op in history.ops:
        yield json.dumps(_fields(op))


def is_exported(text: str) -> bool:
    """Whether what begins like this was written by one of the two."""
    return FORMAT in text.partition("\n")[0]


def _fields(op: Op) -> dict[str, Value]:
    """Extras stand beside the fields. Raises `MalformedHistory` if one would pass for a field."""
    for taken in set(op.extra).intersection(OF_AN_OP):
        raise MalformedHistory(f"operation {op.index}: an extra is called {taken}")
    fields = {
        "index": op.index,
        "time": op.time_ns,
        "type": op.kind.value,
        "process": op.process,
        "f": op.f,
        "value": op.value,
    }
    return fields | ({"error": op.error} if op.error is not None else {}) | dict(op.extra)


def _as_keyword(name: str, value: Value, f: str) -> Any:
    match name:
        case "type" | "f":
            return Keyword(value)
        case "process" if isinstance(value, str):
            return Keyword(value)
        case "value" if f in _STEPS and isinstance(value, list | tuple):
            return [_step(each) for each in value]
        case _:
            return value


def _step(step: Value) -> Any:
    match step:
        case [str(name), *rest] if name in _STEPS:
            return [Keyword(name), *rest]
        case _:
            return step


def _read_msgpack(content: bytes, workload: str | None) -> History:
    history = read_history(content)
    if workload is None:
        return history
    return history_of((_fields(op) for op in history.ops), workload=workload, header=history.header)


def _read_edn(content: bytes, workload: str | None) -> History:
    text = _text(content)
    header = None
    if text.startswith(_EDN_HEADER):
        header = header_of(_json(text.partition("\n")[0].removeprefix(_EDN_HEADER), 1))
    try:
        values = [_plain(value) for value in read_edn(text)]
    except EdnError as error:
        raise MalformedHistory(str(error)) from error
    if len(values) == 1 and isinstance(values[0], list):  # one vector of all operations
        (values,) = values
    return history_of(map(_mapping, values), workload=workload, header=header)


def _read_jsonl(content: bytes, workload: str | None) -> History:
    lines = _text(content).split("\n")  # and nothing else: a text may hold other separators
    header = None
    if FORMAT in lines[0]:
        header = header_of(_json(lines.pop(0), 1))
    numbered = enumerate(lines, 1 if header is None else 2)
    objects = [_mapping(_json(line, number)) for number, line in numbered if line.strip()]
    return history_of(objects, workload=workload, header=header)


def _read_console(content: bytes, workload: str | None) -> History:
    lines = list(console_lines(_text(content), _read_value))
    if not lines:
        raise MalformedHistory("no line of it is an operation: `INFO jepsen.util - 0 :invoke …`")
    return history_of(lines, workload=workload)


READERS: Mapping[str, Callable[[bytes, str | None], History]] = {
    ".edn": _read_edn,
    ".jsonl": _read_jsonl,
    ".log": _read_console,
    ".msgpack": _read_msgpack,
    ".txt": _read_edn,
}


def _read_value(text: str) -> Value:
    try:
        return _plain(next(read_edn(text), None))
    except EdnError as error:
        raise MalformedHistory(f"not a value: {text:.60}: {error}") from error


def _json(line: str, number: int) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise MalformedHistory(f"line {number}: not JSON: {error}") from error
    except RecursionError as error:
        raise MalformedHistory(f"line {number}: nested too deep") from error


def _mapping(value: Any) -> Mapping[str, Value]:
    if not isinstance(value, dict):
        raise MalformedHistory(f"not an operation: {value!r:.100}")
    return value


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise MalformedHistory(f"not UTF-8: {error}") from error


def _plain(value: Any) -> Any:
    """Names become strings, whatever was put around values is taken off, sequences are lists."""
    match value:
        case Keyword(name) | Symbol(name):
            return name
        case Tagged(_, tagged):
            return _plain(tagged)
        case list() | tuple() | frozenset():
            return [_plain(each) for each in value]
        case dict():
            return {_plain_key(key): _plain(of) for key, of in value.items()}
        case _:
            return value


def _plain_key(key: Any) -> Any:
    plain = _plain(key)
    return tuple(plain) if isinstance(plain, list) else plain
