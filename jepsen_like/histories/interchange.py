"""Histories to and from what other checkers read: EDN, JSON lines, console logs.

    .msgpack   our own frames (`jepsen_like.histories.history`)
    .edn .txt  a map an operation, plain or tagged `#jepsen.history.Op`
    .jsonl     an object an operation
    .log       the console output of Jepsen

What we write begins with our header: a comment in EDN, an object of its own in JSON lines. So a
history that went out comes back as it was. In EDN kinds, fs and the names of extras are keywords;
in values only the names of steps are (`[:send "orders-0" [3 17]]`), as Jepsen's checkers want them.

A line of a history that others wrote is a mapping with Jepsen's names (`type`, `process`, `f`,
`value`). Index and time may be missing: then the lines stand in their order. A name that we do not
know is an extra. Four habits of others are translated:

- a register without a key (`:read 3`, `:cas [1 2]`) is the register "", and nobody says what it
  begins with;
- a key beside the value (`:key "x"`, as Porcupine's tests have it) goes into the value;
- an assignment of Jepsen's that says `:seek-to-beginning? true` has the extra `seek`;
- an etcd log says `:fail :cas` when the value was another than expected: extra `mismatch`.

Source: Jepsen's history.edn and console output; Porcupine's test data.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jepsen_like.histories.edn import EdnError, Keyword, Symbol, Tagged, read_edn, write_edn
from jepsen_like.histories.history import (
    FORMAT,
    INITIAL,
    Header,
    History,
    Kind,
    MalformedHistory,
    Op,
    Value,
    header_as_value,
    header_of,
    read_history,
)

__all__ = ["READERS", "REGISTERS", "edn_lines", "is_exported", "jsonl_lines", "read_as"]

OF_AN_OP = ("index", "time", "type", "process", "f", "value", "error", "key")
REGISTERS = ("cas-register", "partition-epoch", "register")  # workloads
_REGISTER = ("read", "write", "cas", "read-stale")
_CONSOLE = re.compile(r"INFO\s+jepsen\.util - (\S+)\s+:(\w+)\s+:(\w+)\s+(.*)$")
_SEEKS_BEGINNING = "seek-to-beginning?"
_SAYS_MISMATCH = "mismatch"


def history_of(
    lines: Iterable[Mapping[str, Value]], *, workload: str | None, header: Header | None = None
) -> History:
    """`header` as it came with the lines; `workload` as whoever reads them knows better.

    Only where neither says what it is a history of, that is guessed.
    """
    ops = [op_of(line, number) for number, line in enumerate(lines)]
    named = workload or (guessed_workload(ops) if header is None else header.workload)
    is_of_registers = named in REGISTERS
    if header is None:
        options: dict[str, Value] = {INITIAL: []} if is_of_registers else {}
        header = Header(workload=named, seed=0, design="foreign", options=options)
    return History(
        header=replace(header, workload=named), ops=_keyed(ops) if is_of_registers else ops
    )


def op_of(line: Mapping[str, Value], number: int) -> Op:
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
    extra = {name: each for name, each in line.items() if name not in OF_AN_OP}
    if extra.get(_SEEKS_BEGINNING):
        extra.setdefault("seek", "beginning")
    return Op(
        index=index,
        time_ns=time_ns,
        kind=kind,
        process=process,
        f=f,
        value=[line["key"], value] if "key" in line else value,
        error=None if error_ is None else str(error_),
        extra=extra,
    )


def console_lines(text: str, read_value: Any) -> Iterator[Mapping[str, Value]]:
    """The operations in a console log of Jepsen's; other lines are left out.

    `read_value` reads what stands at the end of a line.
    """
    for line in text.splitlines():
        found = _CONSOLE.match(line)
        if found is None:
            continue
        process, kind, f, rest = found.groups()
        value = read_value(rest)
        op: dict[str, Value] = {"process": _process(process), "type": kind, "f": f}
        if isinstance(value, str):  # ":timed-out": not what was asked for, but what went wrong
            op["error"] = value
        else:
            op["value"] = value
        if kind == "fail" and f == "cas" and "error" not in op:
            op[_SAYS_MISMATCH] = True
        yield op


def guessed_workload(ops: Sequence[Op]) -> str:
    """Guesses the workload by what was done. "" if nothing tells."""
    done = {op.f for op in ops}
    for workload, fs in (
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


def _process(text: str) -> int | str:
    return int(text) if text.isdigit() else text.lstrip(":")


def _keyed(ops: Sequence[Op]) -> list[Op]:
    """Registers have keys: either all of the values do, or none of them, as where all are nil."""
    accesses = [op for op in ops if op.f in _REGISTER]
    told = [op for op in accesses if op.value is not None]
    if told and all(map(_has_key, told)):
        return list(ops)
    return [replace(op, value=["", op.value]) if _has_value(op) else op for op in ops]


def _has_value(op: Op) -> bool:
    """A change that ends without a value says no more than that it was done."""
    is_told = op.kind is Kind.INVOKE or op.value is not None
    return op.f in _REGISTER and (is_told or op.f not in ("write", "cas"))


def _has_key(op: Op) -> bool:
    match op.value:
        case [_, [_, _] | (_, _)] if op.f == "cas":
            return True
        case [_, _]:
            return op.f != "cas"
        case _:
            return False


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
