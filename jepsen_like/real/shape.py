"""What a local cluster is to be made of, as far as somebody has said it.

What is left open is as in the cluster that the directory holds already, or else by default. Decides
neither where nodes listen nor what their files are called: see `jepsen_like.real.layout`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import SystemRandom

from jepsen_like.real.layout import ClusterError, ClusterLayout, plan
from quorum.raftos.engines import ENGINES, NATIVE, why_no_majority, why_not_installed
from wire.primitives import random_uuid, uuid_text

__all__ = ["Shape", "refuse_engine", "why_no_engine"]

_NODES = 3  # brokers, and controllers
_QUORUM = "quorum"


def why_no_engine(engine: str, *, design: str, controllers: int, dynamic: bool) -> str | None:
    """A sentence for people; None if the cluster can be had."""
    if engine not in ENGINES:
        return f"one of {', '.join(ENGINES)}"
    if engine == NATIVE:
        return None
    if design != "quorum":
        return f"{design} keeps its metadata in ZooKeeper: leave the engine out"
    if dynamic:
        return "the members of raftos are its configuration: its voters cannot live in the log"
    return why_no_majority(controllers) or why_not_installed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """None, False, 0 and "" are not said: counts are 3 then, or what the directory holds."""

    controllers: int | None = None  # none in a design other than quorum, which has ZooKeepers
    brokers: int | None = None
    combined: bool = False
    first_voters: int = 0  # so many controllers are the first voters, which live in the log
    proxies: bool = False  # nodes and clients meet over a `ProxyMesh`, which must run
    network: str = ""  # of namespaces, which must be there: see `injection.namespaces`
    design: str | None = None
    engine: str | None = None
    zookeepers: int | None = None  # of its own
    zookeeper_connect: str = ""  # another's

    @property
    def has_zookeeper(self) -> bool:
        return self.design not in (None, _QUORUM)

    def continuing(self, existing: ClusterLayout) -> "Shape":
        """Take what is left open from the existing cluster; the rest may differ, and be refused."""
        return replace(
            self,
            controllers=self.controllers or len(existing.controllers),
            brokers=len(existing.brokers) if self.brokers is None else self.brokers,
            combined=self.combined or existing.combined,
            first_voters=self.first_voters or int(existing.dynamic),
            proxies=self.proxies or bool(existing.links),
            design=self.design or existing.design,
            engine=self.engine or existing.engine,
            zookeepers=existing.zookeepers if self.zookeepers is None else self.zookeepers,
        )

    def lay_out(self, directory: Path, ports: Iterator[int]) -> ClusterLayout:
        """Nothing is written. Whether its engine can be had, `refuse_engine` says."""
        layout = plan(
            directory,
            cluster_id=_new_id(),
            controllers=0 if self.has_zookeeper else self.controllers or _NODES,
            brokers=_NODES if self.brokers is None else self.brokers,
            combined=self.combined,
            ports=ports,
            design=self.design or _QUORUM,
            engine=self.engine or NATIVE,
            directory_ids=[_new_id() for _ in range(self.first_voters)],
            proxies=self.proxies,
            network=self.network,
        )
        if self.has_zookeeper:
            own = 1 if self.zookeepers is None else self.zookeepers
            connect = self.zookeeper_connect
            layout = replace(layout, zookeepers=0 if connect else own, zookeeper_connect=connect)
        return layout


def refuse_engine(layout: ClusterLayout) -> None:
    """Raises ClusterError if this machine, or the rest of the layout, cannot have its engine."""
    why = why_no_engine(
        layout.engine,
        design=layout.design,
        controllers=len(layout.controllers),
        dynamic=layout.dynamic,
    )
    if why is not None:
        raise ClusterError(f"engine {layout.engine}: {why}")


def _new_id() -> str:
    return uuid_text(random_uuid(SystemRandom()))
