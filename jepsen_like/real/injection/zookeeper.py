"""Faults of the ZooKeeper that belongs to a cluster: a server is killed, and started again.

A session that ends needs no fault of its own: a broker that is paused for longer than its session
has lost it.
"""

from collections.abc import Sequence

from jepsen_like.faults import Fault, Injected, Proof
from jepsen_like.in_force import InForce, proof_of
from jepsen_like.real.layout import ClusterError, ClusterLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.zookeeper import NoZooKeeper
from jepsen_like.roles import FIRST_ZOOKEEPER

__all__ = ["NoWayToZooKeeper", "ZooKeeperDown", "zookeeper_nodes"]


def zookeeper_nodes(layout: ClusterLayout) -> Sequence[int]:
    return [FIRST_ZOOKEEPER + index for index in range(layout.zookeepers)]


class ZooKeeperDown:
    """SIGKILL. What it has answered is in its log, which it reads again."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    def why_not(self) -> str:
        own = self._cluster.layout.zookeepers
        return "" if own else f"the {self._cluster.layout.design} cluster has no ZooKeeper"

    def inject(self, fault: Fault, targets: Sequence[int]) -> Injected:
        zookeeper = self._cluster.zookeeper
        if zookeeper is None:
            raise ClusterError(self.why_not())
        before = {}
        for node in targets:
            server = zookeeper.server(node - FIRST_ZOOKEEPER + 1)
            process = zookeeper.process(server)
            if process is not None:
                zookeeper.kill(server.id)
                before[server.id] = process

        def heal() -> None:
            try:
                for server_id in before:
                    if zookeeper.process(zookeeper.server(server_id)) is None:
                        zookeeper.start(server_id)
            except NoZooKeeper as error:
                raise ClusterError(str(error)) from error

        def prove() -> Proof:
            return proof_of(
                [f"ZooKeeper {each} (process {before[each].pid}) was killed" for each in before]
            )

        return InForce([FIRST_ZOOKEEPER + each - 1 for each in before], heal=heal, prove=prove)


class NoWayToZooKeeper:
    """Virtual time has it; here nothing stands between brokers and their ZooKeeper."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    def why_not(self) -> str:
        own = self._cluster.layout.zookeepers
        design = self._cluster.layout.design
        return (
            "no proxy stands before ZooKeeper: `pause` ends sessions, too"
            if own
            else f"the {design} cluster has no ZooKeeper"
        )

    def inject(self, fault: Fault, targets: Sequence[int]) -> Injected:
        raise ClusterError(self.why_not())
