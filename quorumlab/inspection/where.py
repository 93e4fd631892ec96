"""`--where EXPR`: a small expression over the fields of a record.

    leader == 3 and 2 not in isr
    type == "CONFIG_RECORD" and name == "retention.ms"
    topic == "orders" and partition in [0, 3] and offset > 1000

Python's syntax, of which only comparisons, `and`, `or`, `not`, `in`, literals and names are taken.
A name is a field of some record, or one of offset, epoch, timestamp, type, topic, partition and
broker; any other is refused. A record without the field does not match a comparison with it.
"""

import ast
import difflib
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from wire.record_json import field_names

__all__ = ["Condition", "WhereError", "parse_where"]

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
