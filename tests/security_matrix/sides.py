"""Ours and Apache Kafka's with the same users, listeners and ACLs: a connection for each who asks.

Both serve SASL_PLAINTEXT with PLAIN, and beside it listeners that ask for nothing.
"""

import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from jepsen_like.real.layout import FAST_SETTINGS, NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from tests.differential.sides import ANSWER_SECONDS, CONTROLLER, NODE_ID, SETTINGS, Side
from tests.kafka.interop import RELEASE, KafkaBesideUs
from tests.security_matrix.rights import (
    ADMIN,
    ANONYMOUS,
    NOBODY,
    OWN_NODE,
    RIGHTS,
    WRONG_NODE,
    able,
)

__all__ = ["SecuredSide", "as_asked_by", "secured_sides"]

_HANDSHAKE, _AUTHENTICATE = 17, 36  # their keys
_USERS = (ADMIN, NOBODY, OWN_NODE, WRONG_NODE, *map(able, RIGHTS))
CLUSTER_ID = "c2VjdXJpdHktbWF0cml4LQ"
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def as_asked_by(listener: str, who: str) -> str:
    """A listener as `who` sees it: the name of a connection of its own."""
    return f"{listener}|{who}"


def _secret(user: str) -> str:
    return f"{user}-secret"


@dataclass(slots=True)
class SecuredSide(Side):
    open_ports: tuple[int, int] = (0, 0)  # of the broker and the controller, for anybody

    def port(self, listener: str) -> int:
        where, _, who = listener.partition("|")
        if who == ANONYMOUS:
            return self.open_ports[where == CONTROLLER]
        return super(SecuredSide, self).port(where)

    def _socket(self, listener: str) -> socket.socket:
        if listener in self._sockets:
            return self._sockets[listener]
        connection = super(SecuredSide, self)._socket(listener)
        who = listener.partition("|")[2] or ADMIN
        if who != ANONYMOUS:
            self._authenticate(connection, who)
        return connection

    def _authenticate(self, connection: socket.socket, who: str) -> None:
        connection.settimeout(ANSWER_SECONDS)
        self._show(connection, _HANDSHAKE, struct.pack(">h", 5) + b"PLAIN")
        token = f"\0{who}\0{_secret(who)}".encode()
        self._show(connection, _AUTHENTICATE, struct.pack(">i", len(token)) + token)

    def _show(self, connection: socket.socket, key: int, body: bytes) -> None:
        """Both APIs in version 1, the answers of which begin with the error."""
        frame = struct.pack(">hhih", key, 1, 0, -1) + body
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", self._exactly(connection, 4))
        answer = self._exactly(connection, size)
        assert answer[4:6] == b"\0\0", answer


def _jaas() -> str:
    users = " ".join(f'user_{user}="{_secret(user)}"' for user in _USERS)
    own = f'username="{OWN_NODE}" password="{_secret(OWN_NODE)}"'
    return f"{_MODULE} required {own} {users};"


def _settings(node: NodeLayout, open_ports: tuple[int, int], *, is_ours: bool) -> dict[str, str]:
    listeners = {
        "SASL": node.port,
        "OPEN": open_ports[0],
        "CONTROLLER": node.controller_port,
        "COPEN": open_ports[1],
    }
    protocols = ("SASL_PLAINTEXT", "PLAINTEXT", "SASL_PLAINTEXT", "PLAINTEXT")
    pairs = zip(listeners, protocols, strict=True)
    own = {"quorumlab.node.principals": f"2=User:{WRONG_NODE}"}
    return {
        **SETTINGS,
        "super.users": f"User:{ADMIN};User:{OWN_NODE}",
        "listeners": ",".join(f"{name}://{node.host}:{port}" for name, port in listeners.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{spoken}" for name, spoken in pairs),
        "controller.listener.names": "CONTROLLER,COPEN",
        "inter.broker.listener.name": "SASL",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": _jaas(),
        "listener.name.controller.plain.sasl.jaas.config": _jaas(),
        **(own if is_ours else {}),
    }


@contextmanager
def secured_sides(directory: Path) -> Iterator[tuple[SecuredSide, SecuredSide]]:
    """Ours and Kafka's: broker and controller in one, node 1 of a cluster with the same id."""
    clusters, open_ports = {}, {}
    for name in ("ours", "kafka"):
        # The ports of a second broker are those of the listeners that are open to anybody.
        cluster = LocalCluster.create(
            directory / name, controllers=2, brokers=2, combined=True, release_version=RELEASE
        )
        first, second = cluster.layout.node(1), cluster.layout.node(2)
        assert second.port is not None
        assert second.controller_port is not None
        open_ports[name] = (second.port, second.controller_port)
        layout = replace(cluster.layout, nodes=(first,), cluster_id=CLUSTER_ID)
        layout.save()
        settings = _settings(first, open_ports[name], is_ours=name == "ours")
        clusters[name] = LocalCluster(layout, {**FAST_SETTINGS, **settings})
    ours, kafka = KafkaBesideUs(clusters["ours"], []), KafkaBesideUs(clusters["kafka"], [NODE_ID])
    with ThreadPoolExecutor(1) as pool:
        formatted = pool.submit(kafka.format)  # while ours starts
        with ours.running(NODE_ID):
            formatted.result()
            with kafka.running(NODE_ID):
                mine, theirs = (
                    SecuredSide(
                        name=name,
                        node=cluster.layout.node(NODE_ID),
                        cluster_id=CLUSTER_ID,
                        open_ports=open_ports[name],
                    )
                    for name, cluster in clusters.items()
                )
                yield mine, theirs
