"""Histories to and from what other checkers read: EDN, JSON lines, console logs.

    .msgpack   our own frames (`jepsen_like.histories.history`)
    .edn .txt  a map an operation, plain or tagged `#jepsen.history.Op`
    .jsonl     an object an operation
    .jepsen    the binary store of Jepsen
    .log       the console output of Jepsen

What we write begins with our header: a comment in EDN, an object of its own in JSON lines. So a
history that went out comes back as it was. In EDN kinds, fs and the names of extras are keywords;
in values only the names of steps are (`[:send "orders-0" [3 17]]`), as Jepsen's checkers want them.

A line of a history that others wrote is a mapping with Jepsen's names (`type`, `process`, `f`,
`value`). Index and time may be missing: then the lines stand in their order. A name that we do not
know is an extra. Some habits of others are translated:

- a register without a key (`:read 3`, `:cas [1 2]`) is the register "", and nobody says what it
  begins with;
- a key beside the value, and an assignment that says where it seeks to: see `mappings`;
- an etcd log says `:fail :cas` when the value was another than expected: extra `mismatch`.

Source: Jepsen's history.edn and console output; Porcupine's test data.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import accumulate
from typing import Any, BinaryIO

from jepsen_like.histories.edn import EdnError, Keyword, read_edn, write_edn
from jepsen_like.histories.edn_lines import EDN_HEADER, plain, read_edn_lines
from jepsen_like.histories.guessing import KEYED, REGISTERS, Survey, with_keys
from jepsen_like.histories.history import (
    FORMAT,
    INITIAL,
    Header,
    History,
    Lines,
    MalformedHistory,
    Op,
    Value,
    header_as_value,
    read_history,
    stream_lines,
)
from jepsen_like.histories.jepsen_store import read_jepsen
from jepsen_like.histories.json_lines import read_jsonl
from jepsen_like.histories.mappings import OF_AN_OP, decoded, lines_of

__all__ = [
    "READERS",
    "REGISTERS",
    "edn_lines",
    "is_exported",
    "jsonl_lines",
    "read_as",
    "stream_as",
]

_CONSOLE = re.compile(r"INFO\s+jepsen\.util - (\S+)\s+:(\w+)\s+:(\w+)\s+(.*)$")
_SAYS_MISMATCH = "mismatch"
_FRAMED = ".msgpack"
_STEPS = ("send", "poll", "txn")
_NAMES_OF_STEPS = ("append", "poll", "r", "send", "w")


def read_as(content: bytes, suffix: str, workload: str | None = None) -> History:
    """`suffix` says what it is (".edn"); `workload` what it shall be judged as.

    Raises `MalformedHistory`.
    """
    if suffix == _FRAMED and workload is None:
        return read_history(content)
    header, blocks = stream_as(BytesIO(content), suffix, workload)
    return History(header=header, ops=[op for lines in blocks for op in lines.ops()])


def stream_as(
    source: BinaryIO, suffix: str, workload: str | None = None
) -> tuple[Header, Iterator[Lines]]:
    """The same in bounded memory.

    `workload` is what whoever reads them knows better than the header. Only where neither says what
    it is a history of, that is guessed. What all of its lines have to tell is asked first: then
    they are read twice.
    """
    read = READERS.get(suffix)
    if read is None:
        raise MalformedHistory(
            f"{suffix or 'no suffix'}: histories end with {', '.join(sorted(READERS))}"
        )
    header, blocks = read(source)
    named = workload or (None if header is None else header.workload)
    is_ours = suffix == _FRAMED and workload is None
    if named is None or (named in KEYED and not is_ours):
        survey = Survey.of(blocks)
        named = survey.workload() if named is None else named
        source.seek(0)
        _, blocks = read(source)
        if named in KEYED and not survey.has_keys(named, is_ours=header is not None):
            blocks = map(partial(with_keys, named), blocks)
    if header is None:
        blocks = _in_time(blocks)
        options: dict[str, Value] = {INITIAL: []} if named in REGISTERS else {}
        header = Header(workload=named, seed=0, design="foreign", options=options)
    return replace(header, workload=named), blocks


def _in_time(blocks: Iterable[Lines]) -> Iterator[Lines]:
    """Jepsen's times go back a little from one line to the next: the order is that of the lines."""
    latest: int | None = None
    for lines in blocks:
        times = lines.time_ns if latest is None else [latest, *lines.time_ns]
        in_order = list(accumulate(times, max))
        yield lines._replace(time_ns=in_order if latest is None else in_order[1:])
        latest = in_order[-1] if in_order else latest


def edn_lines(history: History) -> Iterator[str]:
    yield EDN_HEADER + json.dumps(header_as_value(history.header))
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
        case [str(name), *rest] if name in _NAMES_OF_STEPS:
            return [Keyword(name), *rest]
        case _:
            return step


def _read_console(source: BinaryIO) -> tuple[None, Iterator[Lines]]:
    lines = list(_console_lines(decoded(source.read())))
    if not lines:
        raise MalformedHistory("no line of it is an operation: `INFO jepsen.util - 0 :invoke …`")
    return None, iter([lines_of(lines, 0)])


def _console_lines(text: str) -> Iterator[dict[str, Value]]:
    """The operations in a console log of Jepsen's; other lines are left out."""
    for line in text.splitlines():
        found = _CONSOLE.match(line)
        if found is None:
            continue
        process, kind, f, rest = found.groups()
        value = _read_value(rest)
        op: dict[str, Value] = {"process": _process(process), "type": kind, "f": f}
        if isinstance(value, str):  # ":timed-out": not what was asked for, but what went wrong
            op["error"] = value
        else:
            op["value"] = value
        if kind == "fail" and f == "cas" and "error" not in op:
            op[_SAYS_MISMATCH] = True
        yield op


def _process(text: str) -> int | str:
    return int(text) if text.isdigit() else text.lstrip(":")


def _read_value(text: str) -> Value:
    try:
        return plain(next(read_edn(text), None))
    except EdnError as error:
        raise MalformedHistory(f"not a value: {text:.60}: {error}") from error


READERS: Mapping[str, Callable[[BinaryIO], tuple[Header | None, Iterator[Lines]]]] = {
    ".edn": read_edn_lines,
    ".jepsen": read_jepsen,
    ".jsonl": read_jsonl,
    ".log": _read_console,
    _FRAMED: stream_lines,
    ".txt": read_edn_lines,
}
