"""Which proxies stand between the nodes of a cluster, and between its clients and its brokers.

One link is one way for one asker: requests of `source` to `target`, and the answers to them. Every
node reaches every other one over a link of its own, so that each can be cut, slowed or listened to
alone; clients share one link to each broker. Brokers advertise the links of the clients; nodes know
each other by their usual addresses and dial the links instead (`quorumlab.dial.overrides`).

Decides the ports, not what happens on them: see `jepsen_like.real.proxy`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from jepsen_like.faults.participants import CLIENTS

__all__ = ["Link", "advertised_port", "dial_overrides", "links_to_zookeeper", "plan_links"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """`source` dials `port` and gets to `target_port`. A source of CLIENTS: whoever is no node."""

    source: int
    target: int
    port: int
    target_port: int
    controller: bool = False  # the quorum's listener of the target, not the one for clients
    zookeeper: bool = False  # the target is a ZooKeeper, and speaks its own protocol


class _Node(Protocol):
    """The attributes of a node that links depend on."""

    @property
    def id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def controller_port(self) -> int | None: ...
    @property
    def is_broker(self) -> bool: ...


def plan_links(nodes: Sequence[_Node], ports: Iterator[int]) -> tuple[Link, ...]:
    """All nodes send requests to controllers; brokers and clients send requests to brokers."""
    return tuple(_links(nodes, ports))


def _links(nodes: Sequence[_Node], ports: Iterator[int]) -> Iterable[Link]:
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
                )
        if target.is_broker:
            for source in (CLIENTS, *(node.id for node in askers if node.is_broker)):
                yield Link(
                    source=source,
                    target=target.id,
                    port=next(ports),
                    target_port=target.port,
                    controller=False,
                )


def links_to_zookeeper(
    brokers: Sequence[_Node], servers: Mapping[int, int], ports: Iterator[int]
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


def advertised_port(links: Iterable[Link], node: _Node) -> int:
    """Where a broker says that it listens."""
    for link in links:
        if link.source == CLIENTS and link.target == node.id:
            return link.port
    return node.port


def dial_overrides(links: Sequence[Link], nodes: Sequence[_Node], source: _Node) -> str:
    """The `quorumlab.dial.overrides` of a node: known addresses, and the links to dial instead."""
    by_id = {node.id: node for node in nodes}
    pairs = []
    for link in links:
        if link.source == source.id:
            target = by_id[link.target]
            known = link.target_port if link.controller else advertised_port(links, target)
            pairs.append(f"{target.host}:{known}={target.host}:{link.port}")
    return ",".join(pairs)
