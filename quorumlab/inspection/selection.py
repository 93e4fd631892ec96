"""The records that a user wants: by type, subject, place and time, or by expression.

A single record is judged by its facts, a block of partition records by columns, with one result. An
expression (`--where EXPR`, see docs/inspect.md) has Python's syntax, of which only comparisons,
`and`, `or`, `not`, `in`, literals and names are taken. A record without the field that is named
matches no comparison with it.
"""

import ast
import difflib
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from quorumlab.inspection.entries import Entry
from wire.control_records import ControlRecord
from wire.metadata_records import RECORD_TYPES
from wire.partition_columns import NewPartitions, PartitionBlock
from wire.record_json import field_names, type_name

__all__ = [
    "EVERYWHERE",
    "Condition",
    "Flags",
    "Selection",
    "WhereError",
    "parse_place",
    "parse_range",
    "parse_type",
    "parse_where",
]

_Value = Callable[[Mapping[str, Any]], Any]

_COMPARE: Mapping[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}
_ABSENT = object()
_OF_ALL = frozenset(("offset", "epoch", "timestamp", "type", "topic", "partition", "broker"))
_OF_UNKNOWN = frozenset(("key", "reason", "value"))
_DEPTH_MAX = 100
_BROKER_FIELDS = ("brokerId", "leader", "leaderId", "id")
_BROKER_LISTS = (
    "replicas",
    "isr",
    "removingReplicas",
    "addingReplicas",
    "eligibleLeaderReplicas",
    "lastKnownElr",
)
EVERYWHERE = range(-1, 1 << 62)


class WhereError(ValueError):
    """The expression cannot be understood; the message points at the place."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Does the expression hold of a record with these facts?"""

    names: frozenset[str]  # the facts that it looks at
    value: _Value

    def __call__(self, facts: Mapping[str, Any]) -> bool:
        return bool(self.value(facts))


def parse_where(text: str) -> Condition:
    """Raises WhereError."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = f", at column {error.offset}" if isinstance(error, SyntaxError) else ""
        raise WhereError(f"--where {text!r} is no expression{place}") from error
    value = _compile(tree.body, text, 0)
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return Condition(names, value)


def _compile(node: ast.expr, text: str, depth: int) -> _Value:
    if depth > _DEPTH_MAX:
        raise WhereError(f"--where: more than {_DEPTH_MAX} levels deep")
    under = partial(_compile, text=text, depth=depth + 1)
    match node:
        case ast.BoolOp(op=op, values=values):
            parts = [under(part) for part in values]
            every = isinstance(op, ast.And)
            judge = all if every else any
            return lambda fields: judge(part(fields) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = under(operand)
            return lambda fields: not inner(fields)
        case ast.Compare(left=left, comparators=others):
            return _comparison(node.ops, [under(each) for each in (left, *others)])
        case ast.Name(id=name):
            _check_name(name)
            return lambda fields: fields.get(name, _ABSENT)
        case ast.Constant(value=value) if isinstance(value, str | int | float | None):
            return lambda _: value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return lambda _: -value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            found = [under(item) for item in items]
            return lambda fields: [item(fields) for item in found]
        case _:
            piece = ast.get_source_segment(text, node)
            raise WhereError(
                f"--where: {piece!r} is not understood: only names, literals, comparisons, and, or,"
                " not, in"
            )


def _check_name(name: str) -> None:
    known = sorted(field_names() | _OF_ALL | _OF_UNKNOWN)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=2)
        meant = f"; did you mean {' or '.join(close)}?" if close else ""
        raise WhereError(f"--where: no record has a field {name!r}{meant}")


def _comparison(ops: Sequence[ast.cmpop], operands: Sequence[_Value]) -> _Value:
    for op in ops:
        if type(op) not in _COMPARE:
            raise WhereError("--where: `is` is not understood: use == or !=")
    compare = [_COMPARE[type(op)] for op in ops]

    def judge(fields: Mapping[str, Any]) -> bool:
        values = [operand(fields) for operand in operands]
        if any(value is _ABSENT for value in values):
            return False
        try:
            return all(
                holds(left, right)
                for holds, left, right in zip(compare, values, values[1:], strict=False)
            )
        except TypeError:  # of different kinds: neither less nor more
            return False

    return judge


Flags = npt.NDArray[np.bool_]


# --- selections ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A criterion that is None, empty or unbounded selects everything."""

    types: frozenset[str] = frozenset()
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    offsets: range = EVERYWHERE
    times_ms: range = EVERYWHERE
    condition: Condition | None = None

    @property
    def needs_facts(self) -> bool:
        """Is more asked than type, place and time?"""
        bare = replace(self, types=frozenset(), offsets=EVERYWHERE, times_ms=EVERYWHERE)
        return bare != Selection()

    def may_take(self, type_: str, offset: int, timestamp_ms: int) -> bool:
        """Decides by type, place and time alone."""
        return (
            (not self.types or type_ in self.types)
            and offset in self.offsets
            and timestamp_ms in self.times_ms
        )

    def takes(self, facts: Mapping[str, Any]) -> bool:
        """`facts` are those of `entries.TopicNames.facts`; asked where `may_take` says yes."""
        return (
            self.topic in (None, facts["topic"])
            and self.partition in (None, facts["partition"])
            and (self.broker is None or _names_broker(facts, self.broker))
            and (self.condition is None or self.condition(facts))
        )

    def rows(
        self, block: PartitionBlock, first: Entry, name_of: Callable[[bytes], str | None]
    ) -> Flags:
        """Selects rows of a block, an expression aside; `first` is the block's first record.

        `name_of` maps a topic's id. All records of a batch of metadata have one timestamp.
        """
        inside = min(max(first.offset, self.offsets.start), first.offset + len(block) - 1)
        if not self.may_take(first.type, inside, first.timestamp_ms):
            return np.zeros(len(block), np.bool_)
        taken = np.ones(len(block), np.bool_)
        taken[: max(self.offsets.start - first.offset, 0)] = False
        taken[max(self.offsets.stop - first.offset, 0) :] = False
        if self.topic is not None:
            ids = block.topic_ids.tolist()
            wanted = {each for each in set(ids) if name_of(each) == self.topic}
            taken &= np.fromiter((each in wanted for each in ids), np.bool_, len(block))
        if self.partition is not None:
            taken &= block.partition_ids == self.partition
        if self.broker is not None:
            taken &= _rows_with(block, self.broker)
        return taken


def _names_broker(facts: Mapping[str, Any], broker: int) -> bool:
    if any(facts.get(name) == broker for name in _BROKER_FIELDS):
        return True
    return any(broker in (facts.get(name) or ()) for name in _BROKER_LISTS)


def _rows_with(block: PartitionBlock, broker: int) -> Flags:
    """Rows that name a broker as leader, in the ISR or among the replicas."""
    found: Flags = block.leaders == broker
    lists = [(block.isr, block.isr_counts)]
    if isinstance(block, NewPartitions):
        lists.append((block.replicas, block.replica_counts))
    for matrix, counts in lists:
        is_set = np.arange(matrix.shape[1]) < counts[:, None]
        found |= ((matrix == broker) & is_set).any(axis=1)
    return found


# --- words of the command line ---------------------------------------------------------------


def parse_type(text: str) -> str:
    """Kafka's name of a type from any usual spelling of it. Raises ValueError, and lists them."""
    known = {
        _bare(type_name(each)): type_name(each)
        for each in (*RECORD_TYPES, *get_args(ControlRecord))
    }
    known[_bare("UNKNOWN")] = "UNKNOWN"
    found = known.get(_bare(text))
    if found is None:
        close = [known[name] for name in difflib.get_close_matches(_bare(text), known, n=2)]
        meant = f"did you mean {' or '.join(close)}? " if close else ""
        raise ValueError(
            f"no record type {text!r}; {meant}there are {', '.join(sorted(known.values()))}"
        )
    return found


def _bare(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").removesuffix("record")


def parse_range(text: str) -> range:
    """`100..200` (exclusive), `100..`, `..200`, or one offset. Raises ValueError."""
    match = re.fullmatch(r"(\d*)\.\.(\d*)|(\d+)", text)
    if match is None:
        raise ValueError(f"{text!r} is no range of offsets: write 100..200, 100.., ..200 or 100")
    if match[3]:
        return range(int(match[3]), int(match[3]) + 1)
    found = range(int(match[1] or 0), int(match[2] or EVERYWHERE.stop))
    if not found:
        raise ValueError(f"{text!r} has no offset in it: it ends before B, and one is written 100")
    return found


def parse_place(text: str) -> tuple[int | None, int | None]:
    """An offset, or a time in ms: one of the two. Raises ValueError."""
    if text.isdecimal() and len(text) < 12:
        return int(text), None
    if text.isdecimal():
        return None, int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither an offset nor a time: write 1234, 2026-11-21T06:20:07Z, or"
            " milliseconds since 1970"
        ) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return None, int(at.timestamp() * 1000)
