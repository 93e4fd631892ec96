"""A node gets new certificates while it runs, of the same authority.

The new key and certificate take the place of the node's file, and IncrementalAlterConfigs sets the
key stores of its listeners to that same path, at which a node reads it again (docs/security.md).
New connections are then secured by the new certificate, and those of before live on.

The proof: each port shows a certificate with another serial number, and a connection of before
still gets answers. A node that another fault has restarted meanwhile proves nothing.

Source: KIP-226; Kafka's DynamicListenerConfig.
"""

import os
import ssl
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from socket import create_connection

from jepsen_like.faults.fault import Course, Fault, Proof, in_force
from jepsen_like.real.client_handshakes import tls_context
from jepsen_like.real.client_settings import ClientSettings
from jepsen_like.real.injection.process_faults import running
from jepsen_like.real.kafka_client import Client, NoAnswer, refusal
from jepsen_like.real.layout import Address, ClusterError, NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import await_value
from jepsen_like.real.secured import (
    BROKERS_LISTENER,
    CLIENTS_LISTENER,
    CONTROLLERS_LISTENER,
    key_store_key,
)
from wire.errors import ErrorCode
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from wire.messages.features import ApiVersionsRequest, ApiVersionsResponse

__all__ = ["rotate_certificates", "why_no_rotation"]

_BROKER = 4  # the type of a resource
_SET = 0
_ANSWER_SECONDS = 2.0
_SEEN_SECONDS = 5.0  # until a record of the metadata log has come to the node
_IN_THE_CLEAR = "the nodes have no certificates: start them with --security"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listener:
    """One that has a certificate, and how to get in."""

    name: str
    address: Address
    settings: ClientSettings

    def client(self) -> Client:
        return Client([self.address], _ANSWER_SECONDS, settings=self.settings)

    def serial(self) -> str | None:
        """The serial number of the certificate that the port shows now; None if it shows none."""
        assert self.settings.tls is not None, self.name
        context = tls_context(self.settings.tls)
        try:
            with (
                create_connection(self.address, _ANSWER_SECONDS) as connection,
                context.wrap_socket(connection, server_hostname=self.address[0]) as secured,
            ):
                shown = secured.getpeercert()
        except (OSError, ssl.SSLError):
            return None
        return None if shown is None else str(shown["serialNumber"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """A listener as it was before: its certificate, and a connection that must live on."""

    listener: _Listener
    serial: str
    connection: Client

    def seen(self) -> str:
        """What speaks for the rotation; "" if anything speaks against it."""
        name, old = self.listener.name, self.serial
        shown = await_value(self._other_serial, _SEEN_SECONDS)
        if shown is None or not self._is_answered():
            return ""
        return f"{name} shows certificate {shown}, not {old}, and a connection of before lives on"

    def _other_serial(self) -> str | None:
        serial = self.listener.serial()
        return None if serial == self.serial else serial

    def _is_answered(self) -> bool:
        try:
            self.connection.ask(ApiVersionsRequest(), ApiVersionsResponse)
        except ClusterError:
            return False
        return True


def why_no_rotation(cluster: LocalCluster) -> str:
    return _IN_THE_CLEAR if cluster.credentials.issue is None else ""


@in_force
def rotate_certificates(cluster: LocalCluster, fault: Fault, targets: Sequence[int]) -> Course:
    nodes = [cluster.layout.node(each) for each in running(cluster, targets)]
    with ExitStack() as connections:
        before = {
            node.id: [_look(each, connections) for each in _listeners(cluster, node)]
            for node in nodes
        }
        for node in nodes:
            _replace(cluster, node)
            _alter(cluster, node, [each.listener.name for each in before[node.id]])
        yield list(before)
        seen = {node: [each.seen() for each in ports] for node, ports in before.items()}
    told = [f"node {node}: {', '.join(words)}" for node, words in seen.items() if all(words)]
    return Proof(bit=len(told) == len(seen), evidence="; ".join(told) or "not every port changed")


def _look(listener: _Listener, connections: ExitStack) -> _Before:
    serial = listener.serial()
    if serial is None:
        raise ClusterError(f"{listener.address} shows no certificate")
    connection = connections.enter_context(listener.client())
    return _Before(listener=listener, serial=serial, connection=connection)


def _listeners(cluster: LocalCluster, node: NodeLayout) -> Iterator[_Listener]:
    """Those that have a certificate, without the proxies before them."""
    shown = cluster.credentials
    for name, port, settings in (
        (CLIENTS_LISTENER, node.port if node.is_broker else None, shown.brokers),
        (BROKERS_LISTENER, node.broker_port, shown.controllers),
        (CONTROLLERS_LISTENER, node.controller_port, shown.controllers),
    ):
        if port is not None and settings.tls is not None:
            yield _Listener(name=name, address=(node.host, port), settings=settings)


def _replace(cluster: LocalCluster, node: NodeLayout) -> None:
    """At once: a node that starts reads the old file or the new one."""
    assert cluster.credentials.issue is not None, node
    path = cluster.layout.security_files.node(node.id)
    temporary = path.with_suffix(".tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(cluster.credentials.issue(node.id))
    temporary.rename(path)


def _alter(cluster: LocalCluster, node: NodeLayout, listeners: Sequence[str]) -> None:
    """Raises ClusterError. A controller's configs are changed by the active controller."""
    path = str(cluster.layout.security_files.node(node.id))
    configs = tuple(
        AlterableConfig(name=key_store_key(each), config_operation=_SET, value=path)
        for each in listeners
    )
    resource = AlterConfigsResource(
        resource_type=_BROKER, resource_name=str(node.id), configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,))
    refused = f"nobody changes the configs of node {node.id}"
    for client in _asked(cluster, node):
        try:
            with client:
                answer = client.ask(request, IncrementalAlterConfigsResponse).responses[0]
        except NoAnswer as error:
            refused = str(error)
            continue
        if answer.error_code is ErrorCode.NONE:
            return
        refused = refusal(answer.error_code, answer.error_message)
    raise ClusterError(refused)


def _asked(cluster: LocalCluster, node: NodeLayout) -> Iterator[Client]:
    """A broker itself; for a node that is a controller alone, whichever controller leads."""
    shown = cluster.credentials
    if node.is_broker:
        yield Client([(node.host, node.port)], _ANSWER_SECONDS, settings=shown.brokers)
        return
    for each in cluster.layout.controllers:
        if each.controller_port is not None:
            address = (each.host, each.controller_port)
            yield Client([address], _ANSWER_SECONDS, settings=shown.controllers)
