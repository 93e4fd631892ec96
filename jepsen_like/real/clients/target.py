"""Where a cluster is reached: brokers by Kafka's protocol, our own nodes by HTTP as well."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from jepsen_like.real.kafka_client import Client
from jepsen_like.real.layout import ClusterError, ClusterLayout
from jepsen_like.real.links import advertised_port
from wire.messages.metadata import MetadataRequest, MetadataResponse
from wire.primitives import parse_uuid

__all__ = ["Address", "Target", "Voter", "target_of_layout", "target_of_servers"]

Address = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """What a cluster must be told of a controller that shall vote."""

    host: str
    port: int
    directory_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    brokers: Mapping[int, Address]
    http: Mapping[int, Address] = field(default_factory=dict)  # empty: a cluster of others
    controllers: Mapping[int, Address] = field(default_factory=dict)  # where the quorum listens
    voters: Mapping[int, Voter] = field(default_factory=dict)  # empty: they cannot be changed

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.brokers.values())


def target_of_layout(layout: ClusterLayout) -> Target:
    return Target(
        brokers={
            node.id: (node.host, advertised_port(layout.links, node)) for node in layout.brokers
        },
        http={node.id: (node.host, node.http_port) for node in layout.nodes},
        controllers={
            node.id: (node.host, node.controller_port)
            for node in layout.controllers
            if node.controller_port is not None
        },
        voters={
            node.id: Voter(
                host=node.host,
                port=node.controller_port,
                directory_id=parse_uuid(node.first_voter),
            )
            for node in layout.controllers
            if node.first_voter and node.controller_port is not None
        },
    )


def target_of_servers(servers: list[Address]) -> Target:
    """A cluster that somebody else runs: its brokers as it names them itself."""
    with Client(servers) as client:
        answer = client.ask(MetadataRequest(topics=()), MetadataResponse)
    if not answer.brokers:
        raise ClusterError("the cluster names no broker")
    return Target(brokers={each.node_id: (each.host, each.port) for each in answer.brokers})
