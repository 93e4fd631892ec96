"""Faults of the ZooKeeper that belongs to a cluster: a server is killed, and started again.

Its servers count as nodes from 201 on, so that they are not taken for brokers. A session that ends
needs no fault of its own: a broker that is paused for longer than its session has lost it.
"""

from collections.abc import Sequence

from jepsen_like.faults import Fault, Injected, Proof
from jepsen_like.in_force import InForce, proof_of
from jepsen_like.real.layout import ClusterError, ClusterLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.zookeeper import NoZooKeeper

__all__ = ["ZooKeeperDown", "zookeeper_nodes"]

_FIRST = 201


def zookeeper_nodes(layout: ClusterLayout) -> Sequence[int]:
    return [_FIRST + index for index in range(layout.zookeepers)]


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
            server = zookeeper.server(node - _FIRST + 1)
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

        return InForce([_FIRST + each - 1 for each in before], heal=heal, prove=prove)
