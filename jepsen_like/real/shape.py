"""The shape that somebody asks of a local cluster, and its first layout.

What is left open is as in the cluster that the directory holds already, or else by default. What
the files of nodes are called and hold is decided in `jepsen_like.real.layout`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import SystemRandom

from jepsen_like.faults.participants import CLIENTS
from jepsen_like.real.layout import HOST, ClusterError, ClusterLayout, Link, NodeLayout
from jepsen_like.real.secured import encrypts
from quorum.raftos.engines import ENGINES, NATIVE, why_no_majority, why_not_installed
from wire.primitives import random_uuid, uuid_text

__all__ = ["Shape", "links_to_zookeeper", "refuse_engine", "why_no_engine"]

_NODES = 3  # brokers, and controllers
_FIRST_CONTROLLER_ID = 101  # brokers count from 1, so that partition tables stay readable
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
    release_version: str = ""  # of Kafka, whose features the log begins with
    security: str = ""  # what clients speak: see `jepsen_like.real.secured`

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
            release_version=self.release_version or existing.release_version,
            security=self.security or existing.security,
        )

    def lay_out(self, directory: Path, ports: Iterator[int]) -> ClusterLayout:
        """Lay out a new cluster; nothing is written. Brokers take the first of the free `ports`.

        Whether its engine can be had, `refuse_engine` says.
        """
        assert not (self.proxies and self.network), self.network
        nodes = tuple(self._nodes(directory, ports))
        connect = self.zookeeper_connect
        return ClusterLayout(
            directory=directory,
            cluster_id=_new_id(),
            design=self.design or _QUORUM,
            engine=self.engine or NATIVE,
            combined=self.combined,
            nodes=nodes,
            release_version=self.release_version,
            dynamic=any(node.first_voter for node in nodes),
            zookeepers=self._own_zookeepers if self.has_zookeeper else 0,
            zookeeper_connect=connect if self.has_zookeeper else "",
            links=tuple(_links(nodes, ports, self.security or "")) if self.proxies else (),
            network=self.network,
            security=self.security,
        )

    @property
    def _own_zookeepers(self) -> int:
        own = 1 if self.zookeepers is None else self.zookeepers
        return 0 if self.zookeeper_connect else own

    def _nodes(self, directory: Path, ports: Iterator[int]) -> Iterator[NodeLayout]:
        controllers = 0 if self.has_zookeeper else self.controllers or _NODES
        brokers = _NODES if self.brokers is None else self.brokers
        roles = _roles(controllers, brokers, combined=self.combined)
        own = {node_id: next(ports) for node_id in roles}
        voters_left = self.first_voters
        for place, (node_id, node_roles) in enumerate(roles.items(), 1):
            is_controller = "controller" in node_roles
            is_first_voter = is_controller and voters_left > 0
            voters_left -= is_first_voter
            second_port = next(ports) if len(node_roles) > 1 else own[node_id]
            yield NodeLayout(
                id=node_id,
                roles=node_roles,
                host=f"{self.network}.{place}" if self.network else HOST,
                port=own[node_id],
                controller_port=second_port if is_controller else None,
                http_port=next(ports),
                dir=str(directory / str(node_id)),
                broker_port=next(ports) if self.security and "broker" in node_roles else None,
                first_voter=_new_id() if is_first_voter else "",
            )


def _roles(controllers: int, brokers: int, *, combined: bool) -> dict[int, tuple[str, ...]]:
    if not combined:
        roles: dict[int, tuple[str, ...]] = {1 + index: ("broker",) for index in range(brokers)}
        for index in range(controllers):
            roles[_FIRST_CONTROLLER_ID + index] = ("controller",)
        return roles
    return {
        1 + index: tuple(
            role
            for role, count in (("broker", brokers), ("controller", controllers))
            if index < count
        )
        for index in range(max(brokers, controllers))
    }


def _links(nodes: Iterable[NodeLayout], ports: Iterator[int], security: str) -> Iterable[Link]:
    """All nodes send requests to controllers; brokers and clients send requests to brokers."""
    for target in nodes:
        askers = [node for node in nodes if node.id != target.id]
        if target.controller_port is not None:
            for node in askers:
                yield Link(
                    source=node.id,
                    target=target.id,
                    port=next(ports),
                    target_port=target.controller_port,
                    controller=True,
                    tls=bool(security),
                )
        if target.is_broker:
            for source in (CLIENTS, *(node.id for node in askers if node.is_broker)):
                is_client = source == CLIENTS
                own_port = target.port if is_client else target.broker_port or target.port
                yield Link(
                    source=source,
                    target=target.id,
                    port=next(ports),
                    target_port=own_port,
                    tls=bool(security) and (encrypts(security) or not is_client),
                )


def links_to_zookeeper(
    brokers: Iterable[NodeLayout], servers: Mapping[int, int], ports: Iterator[int]
) -> tuple[Link, ...]:
    """Each broker's own way to each of `servers`, whose ports are told by id."""
    return tuple(
        Link(
            source=broker.id,
            target=server,
            port=next(ports),
            target_port=target_port,
            zookeeper=True,
        )
        for broker in brokers
        for server, target_port in servers.items()
    )


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
