"""What a scripted schedule is: a function that stages it, and the planted bugs that it finds."""

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Schedule", "Schedules", "schedule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Holds on the shipped rules; raises Violation or Stuck with any of `finds` planted."""

    run: Callable[[], None]
    finds: tuple[str, ...]  # names of plants; several that belong together are joined by commas


Schedules = dict[str, Schedule]


def schedule(
    schedules: Schedules, *, finds: tuple[str, ...]
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Enter the decorated function in `schedules` under its own name."""

    def enter(run: Callable[[], None]) -> Callable[[], None]:
        schedules[run.__name__] = Schedule(run=run, finds=finds)
        return run

    return enter
