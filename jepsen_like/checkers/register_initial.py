"""What registers hold before anybody writes: nil, a value that is told, or nobody knows.

A told value is a write before all operations, one for each key. It is no line of the history, and
no evidence. Sources: Knossos' registers begin with nil unless they are told a value, and
Porcupine's models tell theirs; histories themselves do not say it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote

from jepsen_like.checkers.operations import NEVER, NO_LINE, Operation
from jepsen_like.checkers.register_accesses import Register, unwritten
from jepsen_like.histories.history import INITIAL, Kind, MalformedHistory, Value

__all__ = [
    "Initial",
    "beginning_with",
    "initial_of",
    "may_begin_with_nil",
    "supposed",
    "why_doubted",
]

Initial = Sequence[Value]
_BEFORE = 2  # positions: the write's call and return


def initial_of(options: Mapping[str, Value]) -> Initial:
    """Our own registers begin with nil. Raises `MalformedHistory`."""
    told = options.get(INITIAL, [None])
    if not isinstance(told, list) or len(told) > 1:
        raise MalformedHistory(f"option {INITIAL}: not [value] or []: {told!r:.100}")
    return told


def may_begin_with_nil(initial: Initial) -> bool:
    return not initial or initial[0] is None


def beginning_with(operations: Sequence[Operation], value: Value) -> list[Operation]:
    """The same, later, with a write of this value to each key before them; nil takes none."""
    if value is None:
        return list(operations)
    later = [
        replace(
            each,
            call=each.call + _BEFORE,
            ret=each.ret if each.ret == NEVER else each.ret + _BEFORE,
        )
        for each in operations
    ]
    return [*_writes(operations, value), *later]


def _writes(operations: Sequence[Operation], value: Value) -> Iterator[Operation]:
    has_versions = any("version" in each.extra for each in operations)
    for key in dict.fromkeys(map(_key, operations)):
        yield Operation(
            process="initial",
            f="write",
            kind=Kind.OK,
            argument=[key, value],
            call=0,
            ret=1,
            index=NO_LINE,
            extra={"version": 0} if has_versions else {},
        )


def _key(operation: Operation) -> str:
    match operation.argument:
        case [key, *_]:
            return str(key)
    raise MalformedHistory(f"operation {operation.index}: no [key, value]")


def supposed(register: Register) -> Sequence[Value]:
    """Values with which it may have begun: the only one that was seen and never written.

    If all are written, then those that were seen or expected before any change had returned.
    """
    never_written = list(dict(unwritten(register)))
    if never_written:
        return never_written if len(never_written) == 1 else ()
    first = min((each.ret for each in register.changes), default=NEVER)
    values = (
        each.result if each.f == "read" else each.argument[0]
        for each in register.accesses
        if each.f != "write" and each.kind is not Kind.FAIL and each.call < first
    )
    return [value for value in dict.fromkeys(values) if value is not None]


def why_doubted(value: Value) -> str:
    text = json.dumps(value, default=_plain)
    return (
        f"{text} was seen and nobody had written it: that is right if registers begin with it "
        f"(--initial {quote(text)}), "
        "and wrong if they begin with nil (--initial nil)"
    )


def _plain(value: Value) -> Value:
    """`exact` keeps numbers of other kinds than int as they are written."""
    text = repr(value)
    return text == "True" if text in ("True", "False") else float(text)
