"""One production of a schedule: how it is staged, and the account of what happened in it.

A schedule is played more than once: on the shipped rules and on those with a bug, judged by the
simulator's invariants or left alone, so that only what clients saw can tell (`is_judged`); in the
simulator, and some of them on real processes. The account has the steps with their times, and the
clients' history as `jepsen_like.histories.history` has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jepsen_like.histories.history import Value
from jepsen_like.sim.open_history import OpenHistory
from jepsen_like.sim.schedules.stages import ClusterStage, QuorumStage, Stages, ZooKeeperStage

__all__ = ["Production", "Step"]

_STEPS_MAX = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    at_ms: int  # of virtual time
    what: str


@dataclass(slots=True, kw_only=True)
class Production(OpenHistory):
    """`settings` overrule those of the schedule; with a `seed`, messages take varying times."""

    stages: Stages
    settings: Mapping[str, Value] = field(default_factory=dict)
    seed: int = 0
    is_judged: bool = True
    steps: list[Step] = field(default_factory=list)

    def cluster(self, **settings: Value) -> ClusterStage:
        """A stage as the schedule wants it; what the production says of it comes first."""
        return self.stages.cluster(self, **{**settings, **self.settings})

    def quorum(self, **settings: Value) -> QuorumStage:
        return self.stages.quorum(self, **{**settings, **self.settings})

    def zookeeper(self, **settings: Value) -> ZooKeeperStage:
        return self.stages.zookeeper(self, **{**settings, **self.settings})

    def note(self, what: str) -> None:
        if len(self.steps) < _STEPS_MAX:
            self.steps.append(Step(at_ms=self.now_us() // 1000, what=what))
