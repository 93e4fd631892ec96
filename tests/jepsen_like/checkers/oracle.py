"""The slow truth: is there any order of the operations that their intervals and the model allow?"""

from collections.abc import Callable, Sequence
from typing import Any

from jepsen_like.checkers.operations import NEVER, Operation

__all__ = ["is_linearizable"]

# The states that may follow; none: the operation cannot happen here.
Step = Callable[[Any, Operation], Sequence[Any]]


def is_linearizable(operations: Sequence[Operation], state: Any, step: Step) -> bool:
    """By trying everything. An operation of unknown end may also never happen."""
    if all(each.ret == NEVER for each in operations):
        return True
    first_ret = min(each.ret for each in operations)
    return any(
        is_linearizable([other for other in operations if other is not each], after, step)
        for each in operations
        if each.call < first_ret
        for after in step(state, each)
    )
