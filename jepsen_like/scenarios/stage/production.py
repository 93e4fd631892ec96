"""The account of one run that is directed: what happened when, and what its clients saw.

The same schedule is played on the shipped rules and on rules with a bug; judged by the simulator's
invariants or left alone, so that only what clients saw can tell (`is_judged`); in the simulator,
and some of them on real processes. The history is as `jepsen_like.histories.history` has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jepsen_like.histories.history import Value
from jepsen_like.sim.open_history import OpenHistory

_STEPS_MAX = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    at_ms: int  # of virtual time
    what: str


@dataclass(slots=True, kw_only=True)
class Production(OpenHistory):
    """`settings` overrule those of the schedule; with a `seed`, messages take varying times."""

    settings: Mapping[str, Value] = field(default_factory=dict)
    seed: int = 0
    is_judged: bool = True
    steps: list[Step] = field(default_factory=list)

    def note(self, what: str) -> None:
        if len(self.steps) < _STEPS_MAX:
            self.steps.append(Step(at_ms=self.now_us() // 1000, what=what))
