"""A set of whole numbers that mostly follow one another: as few intervals as there are gaps."""

from bisect import bisect_right
from collections.abc import Iterable

__all__ = ["Intervals"]


class Intervals:
    """`starts[i]` to `ends[i]`, both within; sorted, and never next to each other."""

    __slots__ = ("ends", "starts")

    def __init__(self, starts: Iterable[int] = (), ends: Iterable[int] = ()) -> None:
        self.starts = list(starts)
        self.ends = list(ends)

    def __bool__(self) -> bool:
        return bool(self.starts)

    def __len__(self) -> int:
        """How many intervals."""
        return len(self.starts)

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.starts, number) - 1
        return at >= 0 and number <= self.ends[at]

    def copy(self) -> "Intervals":
        return Intervals(self.starts, self.ends)

    def first_between(self, low: int, high: int) -> int | None:
        """The first number after `low` and before `high`."""
        at = bisect_right(self.starts, low + 1) - 1
        if at >= 0 and low + 1 <= self.ends[at]:
            return low + 1 if low + 1 < high else None
        found = self.starts[at + 1] if at + 1 < len(self.starts) else high
        return found if found < high else None

    def add(self, number: int) -> bool:
        """Whether it is new."""
        at = bisect_right(self.starts, number) - 1
        if at >= 0 and number <= self.ends[at]:
            return False
        joins_left = at >= 0 and self.ends[at] == number - 1
        joins_right = at + 1 < len(self.starts) and self.starts[at + 1] == number + 1
        if joins_left and joins_right:
            self.ends[at] = self.ends.pop(at + 1)
            del self.starts[at + 1]
        elif joins_left:
            self.ends[at] = number
        elif joins_right:
            self.starts[at + 1] = number
        else:
            self.starts.insert(at + 1, number)
            self.ends.insert(at + 1, number)
        return True

    def discard(self, number: int) -> None:
        at = bisect_right(self.starts, number) - 1
        if at < 0 or number > self.ends[at]:
            return
        start, end = self.starts[at], self.ends[at]
        if start == end:
            del self.starts[at], self.ends[at]
        elif number == start:
            self.starts[at] = number + 1
        elif number == end:
            self.ends[at] = number - 1
        else:
            self.ends[at] = number - 1
            self.starts.insert(at + 1, number + 1)
            self.ends.insert(at + 1, end)

    def forget_first(self) -> None:
        del self.starts[0], self.ends[0]
