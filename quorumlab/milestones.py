"""When a node reached which milestone: the clock and the memory behind `/v1/milestones`.

Cores tell milestones as traces (`quorum.core.milestones`); that a voter misses its leader, and that
it becomes the leader itself, is in a trace that they have anyway. What is detected happened when
the driver began the turn in which the core heard of it; everything else, when the trace was taken:
at the end of that turn.

The clock is CLOCK_MONOTONIC, one for all processes of a machine.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from quorum.core.effects import Trace
from quorum.core.milestones import INSTANT, MILESTONE, Cause, Occasion, Step, milestone

__all__ = ["Milestones"]

_KEPT_MAX = 50_000  # a leader tells four of every ISR that it shrinks
_ROLE = "role"  # of the quorum's engine


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reached:
    at_ns: int
    step: str
    count: int
    about: Mapping[str, object]

    def describe(self) -> dict[str, object]:
        return {
            "at_ns": self.at_ns,
            "step": self.step,
            "count": self.count,
            "about": dict(self.about),
        }


class Milestones:
    """The last fifty thousand of one process."""

    def __init__(
        self, turn_began_ns: Callable[[], int], now_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._turn_began_ns = turn_began_ns
        self._now_ns = now_ns
        self._reached: deque[_Reached] = deque(maxlen=_KEPT_MAX)
        self._instants: dict[str, int] = {}

    def take(self, trace: Trace) -> bool:
        """Is it one for us alone? Others are for the log, too."""
        if trace.event == MILESTONE:
            self._reach(trace)
        elif trace.event == INSTANT:
            self._instants[str(dict(trace.fields)["name"])] = self._now_ns()
        elif trace.event == _ROLE:
            self._change_role(dict(trace.fields))
        return trace.event in (MILESTONE, INSTANT)

    def describe(self) -> dict[str, object]:
        return {
            "now_ns": self._now_ns(),
            "milestones": [each.describe() for each in self._reached],
        }

    def _reach(self, told: Trace) -> None:
        about: dict[str, Any] = dict(told.fields)
        step, count, since = (about.pop(name) for name in ("step", "count", "since"))
        default_ns = self._turn_began_ns() if step == Step.DETECTED else self._now_ns()
        at_ns = self._instants.pop(since, default_ns)
        self._reached.append(_Reached(at_ns=at_ns, step=step, count=count, about=about))

    def _change_role(self, fields: Mapping[str, Any]) -> None:
        epoch = fields["epoch"]
        if fields["role"] == "leader":
            self._reach(milestone(Step.ELECTED, epoch=epoch))
        elif fields["previous"] == "follower" and fields["role"] in ("prospective", "candidate"):
            failed = Cause(Occasion.CONTROLLER_FAILED)
            self._reach(milestone(Step.DETECTED, failed, epoch=epoch))
