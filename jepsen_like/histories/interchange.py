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
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import accumulate
from typing import Any, BinaryIO

from jepsen_like.histories.edn import EdnError, Keyword, read_edn, write_edn
from jepsen_like.histories.edn_lines import EDN_HEADER, plain, read_edn_lines
from jepsen_like.histories.history import (
    FORMAT,
    INITIAL,
    NEMESIS,
    Header,
    History,
    Kind,
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

REGISTERS = ("cas-register", "partition-epoch", "register")  # workloads
_OF_QUEUES = ("enqueue", "dequeue")
_OF_REGISTERS = ("read", "write", "cas", "read-stale")
_KEYED = {"queue": _OF_QUEUES, **dict.fromkeys(REGISTERS, _OF_REGISTERS)}  # others have no keys
_CONSOLE = re.compile(r"INFO\s+jepsen\.util - (\S+)\s+:(\w+)\s+:(\w+)\s+(.*)$")
_SAYS_MISMATCH = "mismatch"
_FRAMED = ".msgpack"
_CHANGES = ("write", "cas", "enqueue")
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
    if named is None or (named in _KEYED and not is_ours):
        done, is_keyed = _survey(blocks)
        named = _guessed(done) if named is None else named
        source.seek(0)
        _, blocks = read(source)
        if named in _KEYED and not is_keyed:
            blocks = map(partial(_with_keys, _KEYED[named]), blocks)
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


def _survey(blocks: Iterable[Lines]) -> tuple[set[str], bool]:
    """What was done, and whether objects have keys: either all values do, or none."""
    done: set[str] = set()
    keyed: set[bool] = set()
    for lines in blocks:
        for process, f, value in zip(lines.process, lines.f, lines.value, strict=True):
            if process == NEMESIS:
                continue
            done.add(f)
            if f == "txn":
                done.update(f"txn {name}" for name in _names_of_steps(value))
            elif f == "read" and type(value) is int:
                done.add("read of a number")
        keyed |= {
            _has_key(f, value)
            for f, value in zip(lines.f, lines.value, strict=True)
            if f in (*_OF_QUEUES, *_OF_REGISTERS) and value is not None
        }
    return done, keyed == {True}


def _names_of_steps(value: Value) -> Iterator[Value]:
    for step in value if isinstance(value, list | tuple) else ():
        if isinstance(step, list | tuple) and step:
            yield step[0]


def _guessed(done: AbstractSet[str]) -> str:
    """The workload, by what was done. "" if nothing tells."""
    if done >= {"add", "read of a number"}:
        return "counter"
    for workload, fs in (
        ("append", {"txn append"}),
        ("rw-register", {"txn w"}),
        ("bank", {"transfer"}),
        ("total-queue", {"drain"}),
        ("kafka", {"txn", "commit"}),
        ("log", {"send", "poll"}),
        ("cas-register", {"cas"}),
        ("kv", {"get", "put", "append"}),
        ("queue", {"enqueue", "dequeue"}),
        ("set", {"add", "remove"}),
        ("register", {"read", "write"}),
        ("observe", {"observe"}),
    ):
        if done & fs:
            return workload
    return ""


def _has_key(f: str, value: Value) -> bool:
    match value:
        case [_, [_, _] | (_, _)] if f == "cas":
            return True
        case [_, _]:
            return f != "cas"
        case _:
            return False


def _with_keys(fs: Container[str], lines: Lines) -> Lines:
    """A change that ends without a value says no more than that it was done."""
    value = [
        ["", value]
        if f in fs and (kind == Kind.INVOKE or value is not None or f not in _CHANGES)
        else value
        for f, kind, value in zip(lines.f, lines.kind, lines.value, strict=True)
    ]
    return lines._replace(value=value)


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
