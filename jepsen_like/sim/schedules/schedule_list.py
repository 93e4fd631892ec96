"""What a scripted schedule is: a function that stages it, and the planted bugs that it finds."""

from collections.abc import Callable
from dataclasses import dataclass

from jepsen_like.sim.schedules.production import Production

__all__ = ["Play", "Schedule", "Schedules", "schedule"]

Play = Callable[[Production], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Holds on the shipped rules. With any of `finds` planted it raises Violation or Stuck, or, if
    it is one of harm, the history of its clients shows it.

    One that finds nothing shows what a setting lets happen.
    """

    run: Play
    finds: tuple[str, ...] = ()  # names of plants; several that belong together joined by commas

    @property
    def story(self) -> str:
        """What happens in it, in a few sentences."""
        return " ".join((self.run.__doc__ or "").split())


Schedules = dict[str, Schedule]


def schedule(schedules: Schedules, *, finds: tuple[str, ...] = ()) -> Callable[[Play], Play]:
    """Enter the decorated function in `schedules` under its own name."""

    def enter(run: Play) -> Play:
        schedules[run.__name__] = Schedule(run=run, finds=finds)
        return run

    return enter
