"""An operator who restarts a broker whose epoch is not the registered one any more.

A registration that the network held back may arrive when its process is dead and the next one has
registered. It gets a new epoch, which no process has; the living process keeps the old one and is
refused for good. As in Apache Kafka, an operator has to restart it.
"""

from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Effect

__all__ = ["StaleBrokers"]


class StaleBrokers(Observer):
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._found: set[tuple[int, int]] = set()  # node id and number of the process

    def settled(self, host: Host, effects: list[Effect]) -> None:
        """Is a later epoch registered than the one that the broker knows as its own?"""
        own = self._cluster.metadata.image.brokers.get(host.node_id)
        broker = None if own is None else self._cluster.broker(host.node_id)
        if broker is None or own is None:
            return
        if not 0 <= broker.broker_epoch < own.epoch:
            return
        incarnation = host.incarnation
        if (host.node_id, incarnation) not in self._found:
            self._found.add((host.node_id, incarnation))
            self._cluster.world.after(0, lambda: self._replace(host, incarnation))

    def _replace(self, host: Host, incarnation: int) -> None:
        if host.is_up and host.incarnation == incarnation:
            self._cluster.counts.fired("superseded")
            host.crash(power_loss=False)
            host.start()
