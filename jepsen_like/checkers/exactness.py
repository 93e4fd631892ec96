"""Values told apart by what they are, and not only by what Python takes for equal.

1, 1.0 and True are one key of a dict, and three values of a history. What is not a number (NaN)
equals nothing in Python, and itself here.
"""

from collections.abc import Hashable
from dataclasses import dataclass

from jepsen_like.histories.history import Value

__all__ = ["exact"]


@dataclass(frozen=True, slots=True)
class _Told:
    """Something that equals numbers of other kinds, as it is written."""

    text: str

    def __repr__(self) -> str:
        return self.text


def exact(value: Value) -> Hashable:
    """Hashable, and equal where the value is the same. Raises TypeError: a mapping cannot be."""
    match value:
        case bool() | float():
            return _Told(repr(value))
        case list() | tuple():
            return tuple(map(exact, value))
        case _:
            hash(value)
            told: Hashable = value
            return told
