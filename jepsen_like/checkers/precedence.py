"""Moments that lie within intervals, some of them before others: do they have an order?

They have one if and only if no moment is before itself, around a cycle, and none must follow one
that began when it had ended. Takes time in proportion to the arrows.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Interval", "contradiction"]

Arrows = Mapping[int, Sequence[int]]  # of a moment: those that it is before


@dataclass(frozen=True, slots=True)
class Interval:
    begin: int
    end: int  # > begin


def contradiction(intervals: Sequence[Interval], arrows: Arrows) -> list[int]:
    """Moments that have no order, each before the next one; none if all have."""
    waits = [0] * len(intervals)
    for others in arrows.values():
        for each in others:
            waits[each] += 1
    earliest = [each.begin for each in intervals]
    because: dict[int, int] = {}
    ready = [each for each, count in enumerate(waits) if not count]
    for moment in ready:  # grows
        if earliest[moment] >= intervals[moment].end:
            return _reasons(moment, because)
        for behind in arrows.get(moment, ()):
            if earliest[behind] < earliest[moment]:
                earliest[behind], because[behind] = earliest[moment], moment
            waits[behind] -= 1
            if not waits[behind]:
                ready.append(behind)
    return _cycle(arrows, {each for each, count in enumerate(waits) if count})


def _reasons(moment: int, because: Mapping[int, int]) -> list[int]:
    found = [moment]
    while found[-1] in because:
        found.append(because[found[-1]])
    return found[::-1]


def _cycle(arrows: Arrows, left: set[int]) -> list[int]:
    """A short one among moments that wait for each other, or for such ones."""
    if not left:
        return []
    before = {each: moment for moment in left for each in arrows.get(moment, ()) if each in left}
    start = next(iter(left))
    for _ in left:
        start = before[start]  # after so many steps back, it is in a cycle
    came_from: dict[int, int] = {}
    waiting = deque([start])
    while start not in came_from:
        moment = waiting.popleft()
        for each in arrows.get(moment, ()):
            if each not in came_from:
                came_from[each] = moment
                waiting.append(each)
    found = [start]
    while came_from[found[-1]] != start:
        found.append(came_from[found[-1]])
    return found[::-1]
