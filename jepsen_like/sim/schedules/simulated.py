"""Productions in the simulator."""

from typing import Any

from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.scenario import Scenario
from jepsen_like.sim.schedules.stage import Stage
from jepsen_like.sim.schedules.zk_stage import ZkStage

__all__ = ["simulated"]


class _Simulator:
    def cluster(self, production: Production, **settings: Any) -> Stage:
        return Stage(production, **settings)

    def quorum(self, production: Production, **settings: Any) -> Scenario:
        return Scenario(production, **settings)

    def zookeeper(self, production: Production, **settings: Any) -> ZkStage:
        return ZkStage(production, **settings)


def simulated(**how: Any) -> Production:
    """`how`: as in `Production`."""
    return Production(stages=_Simulator(), **how)
