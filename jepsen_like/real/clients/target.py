"""Where a cluster is reached, and requests of Kafka's protocol to its nodes.

Requests are sent one at a time, over connections that are kept, and each of them once. What comes
of a request says whether it may have been carried out: a refusal that is definite, an answer, or a
doubt.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from jepsen_like.histories.history import Kind, Value
from jepsen_like.real.client_settings import PLAIN, ClientSettings
from jepsen_like.real.credentials import NO_CREDENTIALS, Credentials
from jepsen_like.real.kafka_client import Client, NotConnected
from jepsen_like.real.layout import Address, ClusterError, ClusterLayout
from jepsen_like.real.pages import Answered, ask
from jepsen_like.workloads.workload import Done
from wire.messages.metadata import MetadataRequest, MetadataResponse
from wire.primitives import parse_uuid

__all__ = [
    "Nodes",
    "Target",
    "carried_out",
    "known_offset",
    "target_of_layout",
    "target_of_servers",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """What AddRaftVoter names a controller by."""

    host: str
    port: int
    directory_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    brokers: Mapping[int, Address]
    http: Mapping[int, Address] = field(default_factory=dict)  # empty: a cluster of others
    controllers: Mapping[int, Address] = field(default_factory=dict)  # where the quorum listens
    voters: Mapping[int, Voter] = field(default_factory=dict)  # empty: they cannot be changed
    credentials: Credentials = NO_CREDENTIALS

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.brokers.values())

    def page(self, node: int, path: str, *, timeout_seconds: float, body: Value = None) -> Answered:
        """Ask the HTTP side of a node."""
        access = self.credentials.pages
        address = self.http[node]
        return ask(address, path, timeout_seconds=timeout_seconds, body=body, access=access)

    def of_brokers(self, timeout_seconds: float) -> "Nodes":
        return Nodes(self.brokers, timeout_seconds, self.credentials.brokers)

    def of_controllers(self, timeout_seconds: float, as_node: int | None = None) -> "Nodes":
        """Only the node itself may say some things."""
        shown = self.credentials
        settings = shown.controllers if as_node is None else shown.as_node(as_node)
        return Nodes(self.controllers, timeout_seconds, settings)


def target_of_layout(layout: ClusterLayout, credentials: Credentials = NO_CREDENTIALS) -> Target:
    return Target(
        credentials=credentials,
        brokers={node.id: (node.host, layout.advertised_port(node)) for node in layout.brokers},
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


def target_of_servers(servers: list[Address], credentials: Credentials) -> Target:
    """A cluster that somebody else runs: its brokers as it names them itself."""
    with Client(servers, settings=credentials.brokers) as client:
        answer = client.ask(MetadataRequest(topics=()), MetadataResponse)
    if not answer.brokers:
        raise ClusterError("the cluster names no broker")
    brokers = {each.node_id: (each.host, each.port) for each in answer.brokers}
    return Target(brokers=brokers, credentials=credentials)


Answer = TypeVar("Answer")


def carried_out(request: Callable[[], Done], *, reads: bool = False) -> Done:
    """How a request ended. One that was not sent did nothing; a read never does anything."""
    try:
        return request()
    except NotConnected:
        return Done(kind=Kind.FAIL, error="not connected")
    except ClusterError as error:
        return Done(kind=Kind.FAIL if reads else Kind.INFO, error=str(error))


class Nodes:
    """Raises NotConnected if nothing was sent, NoAnswer or another ClusterError if it was."""

    def __init__(
        self,
        addresses: Mapping[int, Address],
        timeout_seconds: float,
        settings: ClientSettings = PLAIN,
    ) -> None:
        self._addresses = addresses
        self._settings = settings
        self._timeout_seconds = timeout_seconds
        self._open: dict[int | None, Client] = {}

    def ask(
        self,
        request: object,
        expected: type[Answer],
        *,
        node: int | None = None,
        timeout_seconds: float | None = None,
    ) -> Answer:
        """Ask one node; or any one, always the same while it answers."""
        client = self._open.get(node)
        if client is None:
            addresses = list(self._addresses.values()) if node is None else [self._addresses[node]]
            client = Client(addresses, self._timeout_seconds, settings=self._settings)
            client.__enter__()
            self._open[node] = client
        try:
            return client.ask(
                request, expected, timeout_seconds=timeout_seconds or self._timeout_seconds
            )
        except ClusterError:
            self._forget(node)
            raise

    def close(self) -> None:
        for node in list(self._open):
            self._forget(node)

    def _forget(self, node: int | None) -> None:
        self._open.pop(node).__exit__(None, None, None)


def known_offset(told: int | None) -> int | None:
    """A repeated record may be acknowledged without its offset: then it is a number below zero."""
    return told if told is not None and told >= 0 else None
