"""`--where EXPR`: a small expression over the fields of a record.

    leader == 3 and 2 not in isr
    type == "CONFIG_RECORD" and name == "retention.ms"
    topic == "orders" and partition in [0, 3] and offset > 1000

Python's syntax, of which only comparisons, `and`, `or`, `not`, `in`, literals and names are taken.
A name is a field of the record, or one of offset, epoch, timestamp, type, topic, partition, broker.
A record without the field does not match a comparison with it.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Condition", "WhereError", "parse_where"]

Condition = Callable[[Mapping[str, Any]], bool]
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


class WhereError(ValueError):
    """The expression cannot be understood; the message points at the place."""


def parse_where(text: str) -> Condition:
    """Raises WhereError."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = f", at column {error.offset}" if isinstance(error, SyntaxError) else ""
        raise WhereError(f"--where {text!r} is no expression{place}") from error
    value = _compile(tree.body, text)
    return lambda fields: bool(value(fields))


def _compile(node: ast.expr, text: str) -> _Value:
    match node:
        case ast.BoolOp(op=op, values=values):
            parts = [_compile(part, text) for part in values]
            every = isinstance(op, ast.And)
            judge = all if every else any
            return lambda fields: judge(part(fields) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _compile(operand, text)
            return lambda fields: not inner(fields)
        case ast.Compare():
            return _comparison(node, text)
        case ast.Name(id=name):
            return lambda fields: fields.get(name, _ABSENT)
        case ast.Constant(value=value) if isinstance(value, str | int | float | None):
            return lambda _: value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return lambda _: -value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            found = [_compile(item, text) for item in items]
            return lambda fields: [item(fields) for item in found]
        case _:
            piece = ast.get_source_segment(text, node)
            raise WhereError(
                f"--where: {piece!r} is not understood: only names, literals, comparisons, and, or,"
                " not, in"
            )


def _comparison(node: ast.Compare, text: str) -> _Value:
    operands = [_compile(each, text) for each in (node.left, *node.comparators)]
    for op in node.ops:
        if type(op) not in _COMPARE:
            raise WhereError("--where: `is` is not understood: use == or !=")
    compare = [_COMPARE[type(op)] for op in node.ops]

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
