"""Where in a history an operation is, as one number: its invocation, and its completion if any.

Rows carry it instead of the operation, so that what was found far from the history (in columns, in
another process, on another machine) still names the lines that show it.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from jepsen_like.checkers.operations import Operation
from jepsen_like.history import MalformedHistory

__all__ = ["evidence", "invocation", "lines", "place", "places"]

Column = NDArray[np.int64]
_BITS = 31  # histories of up to 2^31 lines
_MASK = (1 << _BITS) - 1


def place(operation: Operation) -> int:
    """Raises `MalformedHistory` where the index is that of no line."""
    index, completed = operation.index, operation.ret_index
    if not 0 <= index <= _MASK or (completed or 0) > _MASK:
        raise MalformedHistory(f"index {max(index, completed or index)}: no line of a history")
    return index << _BITS | (0 if completed is None else max(completed - index, 0))


def places(invoked: Column, completed: Column) -> Column:
    """Of many operations; `completed` is -1 where there is no completion."""
    assert int(max(invoked.max(initial=0), completed.max(initial=0))) <= _MASK
    return (invoked << _BITS) | np.where(completed >= 0, completed - invoked, 0)


def lines(places: Column) -> tuple[Column, Column]:
    """What `places` was made of."""
    invoked, distance = places >> _BITS, places & _MASK
    return invoked, np.where(distance, invoked + distance, -1)


def invocation(place: int) -> int:
    return place >> _BITS


def evidence(places: Iterable[int]) -> tuple[int, ...]:
    """All lines of these operations, each once."""
    lines = set()
    for each in places:
        lines |= {invocation(each), invocation(each) + (each & _MASK)}
    return tuple(sorted(lines))
