"""Histories that others wrote, made ours: what is missing is filled in, and values get their keys.

A line of a history is a mapping with Jepsen's names (`type`, `process`, `f`, `value`), wherever it
came from. Index and time may be missing: then the lines stand in their order. What is not known is
an extra. Four habits of others are translated:

- a register without a key (`:read 3`, `:cas [1 2]`) is the register "", and nobody says what it
  begins with;
- a key beside the value (`:key "x"`, as Porcupine's tests have it) goes into the value;
- an assignment of Jepsen's that says `:seek-to-beginning? true` has the extra `seek`;
- an etcd log says `:fail :cas` when the value was another than expected: extra `mismatch`.

Source: Jepsen's history.edn and console output; Porcupine's test data.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jepsen_like.histories.history import (
    INITIAL,
    Header,
    History,
    Kind,
    MalformedHistory,
    Op,
    Value,
)

__all__ = ["REGISTERS", "console_lines", "guessed_workload", "history_of", "op_of"]

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
