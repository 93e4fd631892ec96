"""The greatest of all that had ended before a moment, for one moment after the other."""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import partial
from itertools import accumulate
from typing import Generic, TypeVar

__all__ = ["Earlier"]

Item = TypeVar("Item")


class Earlier(Generic[Item]):
    def __init__(
        self, items: Iterable[Item], *, ret: Callable[[Item], int], rank: Callable[[Item], int]
    ) -> None:
        ordered = sorted(items, key=ret)
        self._rets = [ret(each) for each in ordered]
        self._greatest: list[Item] = list(accumulate(ordered, partial(max, key=rank)))

    def before(self, moment: int) -> Item | None:
        at = bisect_left(self._rets, moment)
        return self._greatest[at - 1] if at else None
