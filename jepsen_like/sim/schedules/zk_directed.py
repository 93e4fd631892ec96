"""A simulated cluster of a design, of which a schedule hears what brokers ask of ZooKeeper."""

from collections.abc import Callable
from dataclasses import replace

from jepsen_like.sim.host import Host
from jepsen_like.sim.pace import AT_ONCE
from jepsen_like.sim.schedules.stage_settings import ZkStageSettings
from jepsen_like.sim.zk_cluster import PATIENCE, ZkCluster, ZkOptions
from quorum.core.effects import Effect
from quorum.zookeeper.zk_effects import ZkRequest
from wire.zk.designs import DESIGNS, Design
from wire.zk.session import Operation

__all__ = ["DirectedCluster", "design_of"]


def design_of(name: str, *, without: str = "") -> Design:
    """`without`: a field of the design that is switched off."""
    design = DESIGNS[name]
    return replace(design, **{without: False}) if without else design  # type: ignore[arg-type]


class DirectedCluster(ZkCluster):
    """`asked` hears what a broker asks of ZooKeeper, before it is asked."""

    asked: Callable[[int, Operation], None] = staticmethod(lambda _node, _operation: None)

    @classmethod
    def of(cls, seed: int, wanted: ZkStageSettings) -> "DirectedCluster":
        return cls(
            seed,
            ZkOptions(
                design=design_of(wanted.design, without=wanted.without),
                brokers=tuple(range(1, wanted.brokers + 1)),
                session_timeout_ms=wanted.session_timeout_ms,
                turns_us=AT_ONCE,
                lag_time_max_ms=wanted.lag_time_max_ms,
                of_replicas=replace(PATIENCE, queue_max=wanted.queue_max),
                properties={"unclean.leader.election.enable": str(wanted.unclean).lower()},
            ),
        )

    def performing(self, host: Host, effect: Effect) -> None:
        super().performing(host, effect)
        if isinstance(effect, ZkRequest):
            self.asked(host.node_id, effect.operation)
