"""The cluster that a run breaks, ours or somebody else's, and what can be done to it."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jepsen_like.faults import Injector
from jepsen_like.real.clients.target import Target
from jepsen_like.real.local_cluster import LocalCluster

__all__ = ["Environment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    target: Target
    injectors: Mapping[str, Injector]
    cluster: LocalCluster | None = None  # None: somebody else's
    zookeepers: Sequence[int] = ()  # as faults name them

    def heal(self) -> None:
        """Whatever an injector left behind: every node of ours runs, and none stands still."""
        if self.cluster is not None:
            for node_id in self.cluster.running():
                self.cluster.resume(node_id)
            self.cluster.start_all()

    def remove_data(self) -> None:
        """Of a run that needs no second look. Logs of nodes stay."""
        if self.cluster is not None:
            for node in self.cluster.layout.nodes:
                shutil.rmtree(node.data, ignore_errors=True)
