"""How a time grows with the number of partitions: the exponent of a power, fitted to measurements.

Pure. log(time) against log(partitions) by least squares. Times between two steps are fitted, never
times since the fault: those begin with a time-out, which is the same for all and would hide growth.
"""

from collections.abc import Iterable
from math import log

__all__ = ["exponent", "in_words"]

_FLOOR_MS = 0.5  # below it, one time is as good as another on a machine that does other things
_FLAT = 0.3
_LINEAR = (0.8, 1.25)


def exponent(points: Iterable[tuple[int, float]]) -> float | None:
    """Of (partitions, ms); None if there are not two different numbers of partitions."""
    logs = [(log(partitions), log(max(ms, _FLOOR_MS))) for partitions, ms in points]
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread


def in_words(found: float | None) -> str:
    if found is None:
        return "not known"
    if found < _FLAT:
        return "flat"
    if found < _LINEAR[0]:
        return "less than linear"
    if found <= _LINEAR[1]:
        return "linear"
    return "more than linear"
