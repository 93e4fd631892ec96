"""The successor of a mapping in the making: copied when it is first changed.

Most batches leave most mappings of an image alone, and those are shared with the image before.
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

__all__ = ["MappingDraft"]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class MappingDraft(Generic[_Key, _Value]):
    """`now` may be given out once nothing is changed any more."""

    __slots__ = ("_after", "_before", "changed")

    def __init__(self, before: Mapping[_Key, _Value]) -> None:
        self._before = before
        self._after: dict[_Key, _Value] | None = None
        self.changed: dict[_Key, None] = {}  # an ordered set: what was put or removed

    @property
    def now(self) -> Mapping[_Key, _Value]:
        return self._before if self._after is None else self._after

    def put(self, key: _Key, value: _Value) -> None:
        self._own()[key] = value
        self.changed[key] = None

    def remove(self, key: _Key) -> None:
        """Take `key` out, if it is in."""
        if key in self.now:
            del self._own()[key]
        self.changed[key] = None

    def _own(self) -> dict[_Key, _Value]:
        if self._after is None:
            self._after = dict(self._before)
        return self._after
