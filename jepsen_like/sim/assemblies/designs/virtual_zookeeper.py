"""Faults of the ensemble: a server dies, and is started again; brokers find no way to any server.

The second is what ends sessions while brokers go on talking to each other and to clients. What the
proof says was done: the ensemble has no message that could be lost without it.
"""

from collections.abc import Mapping, Sequence

from jepsen_like.faults.fault import Fault, InForce, Injector, cannot, proof_of
from jepsen_like.faults.participants import FIRST_ZOOKEEPER
from jepsen_like.sim.assemblies.designs.zk_cluster import ZkCluster

__all__ = ["ZooKeepers"]


class ZooKeepers:
    """Each method injects one kind."""

    def __init__(self, cluster: ZkCluster) -> None:
        self._cluster = cluster

    @property
    def kinds(self) -> Mapping[str, Injector]:
        return {
            "kill-zookeeper": Injector(self.kill),
            "cut-zookeeper": Injector(self.cut),
            "cut-controllers": cannot("no node is a controller alone"),
            "resign": cannot("the controller holds its office as long as its session"),
            "wipe": cannot("the designs on ZooKeeper rely on replicas that keep what they have"),
        }

    def kill(self, fault: Fault, targets: Sequence[int]) -> InForce:
        ensemble = self._cluster.ensemble
        numbers = [node - FIRST_ZOOKEEPER + 1 for node in targets]
        died = [number for number in numbers if ensemble.servers[number].is_up]
        for number in died:
            ensemble.kill(number)

        def heal() -> None:
            for number in died:
                if not ensemble.servers[number].is_up:
                    ensemble.restart(number)

        proof = proof_of([f"ZooKeeper {number} died" for number in died])
        return InForce(targets, heal=heal, prove=lambda: proof)

    def cut(self, fault: Fault, targets: Sequence[int]) -> InForce:
        hosts = self._cluster.hosts
        cut = {node: hosts[node].incarnation for node in targets if hosts[node].is_up}
        for node in cut:
            self._cluster.cut_session(node)

        def heal() -> None:
            for node, incarnation in cut.items():
                if hosts[node].is_up and hosts[node].incarnation == incarnation:
                    self._cluster.heal_session(node)

        proof = proof_of([f"node {node} found no way to ZooKeeper" for node in cut])
        return InForce(targets, heal=heal, prove=lambda: proof)
