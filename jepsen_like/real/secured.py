"""How a secured local cluster is laid out: where its secrets lie, and what its nodes are told.

DIR/client.properties           what Kafka's tools are told (`--command-config`)
DIR/controller.properties       the same, to ask controllers
DIR/librdkafka.properties       what clients of librdkafka are told
DIR/security/ca.pem             the certificate of the cluster's authority
DIR/security/node-<id>.pem      a node's certificate and key
DIR/security/admin.pem          the administrator's
DIR/security/http.users         who may read the pages of nodes
DIR/security/decoy.secret       what all nodes make decoys of unknown users of; it is in their
                                server.properties

Between nodes there is always TLS, and both sides show certificates. What clients do is the choice.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "ADMIN",
    "BROKERS_LISTENER",
    "CLIENTS_LISTENER",
    "CONTROLLERS_LISTENER",
    "SCRAM",
    "SCRAM_LOGIN_MODULE",
    "SECURITIES",
    "SSL",
    "Listening",
    "SecurityFiles",
    "advertised_listeners",
    "encrypts",
    "key_store_key",
    "listener_pairs",
    "node_name",
]

SSL = "ssl"
SECURITIES = (SSL, "sasl_plaintext", "sasl_ssl")  # what clients of a secured cluster speak
ADMIN = "admin"
SCRAM = "SCRAM-SHA-512"  # how clients log in
SCRAM_LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
CLIENTS_LISTENER, BROKERS_LISTENER = "CLIENTS", "BROKERS"
CONTROLLERS_LISTENER = "CONTROLLER"
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True, slots=True)
class SecurityFiles:
    cluster: Path  # its directory

    @property
    def directory(self) -> Path:
        return self.cluster / "security"

    @property
    def authority(self) -> Path:
        return self.directory / "ca.pem"

    @property
    def admin(self) -> Path:
        return self.directory / f"{ADMIN}.pem"

    @property
    def http_users(self) -> Path:
        return self.directory / "http.users"

    @property
    def decoy_secret(self) -> Path:
        return self.directory / "decoy.secret"

    @property
    def client(self) -> Path:
        return self.cluster / "client.properties"

    @property
    def controller_client(self) -> Path:
        return self.cluster / "controller.properties"

    @property
    def librdkafka(self) -> Path:
        return self.cluster / "librdkafka.properties"

    def node(self, node_id: int) -> Path:
        return self.directory / f"{node_name(node_id)}.pem"


def node_name(node_id: int) -> str:
    return f"node-{node_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where a node listens; None: it has not that role."""

    host: str
    clients: int | None
    brokers: int | None
    controllers: int | None


def listener_pairs(
    security: str, files: SecurityFiles, node_id: int, at: Listening, all_ids: Iterable[int]
) -> Iterable[tuple[str, str]]:
    """What a node of a secured cluster is told of its listeners, its stores and who may do all."""
    named = (
        (CLIENTS_LISTENER, at.clients),
        (BROKERS_LISTENER, at.brokers),
        (CONTROLLERS_LISTENER, at.controllers),
    )
    yield "listeners", ",".join(f"{name}://{at.host}:{port}" for name, port in named if port)
    protocols = (
        f"{CLIENTS_LISTENER}:{security.upper()},{BROKERS_LISTENER}:SSL,{CONTROLLERS_LISTENER}:SSL"
    )
    yield "listener.security.protocol.map", protocols
    if at.brokers:
        yield "inter.broker.listener.name", BROKERS_LISTENER
    yield "ssl.keystore.type", "PEM"
    yield "ssl.keystore.location", str(files.node(node_id))
    yield "ssl.truststore.type", "PEM"
    yield "ssl.truststore.location", str(files.authority)
    mutual = [
        BROKERS_LISTENER,
        CONTROLLERS_LISTENER,
        *([CLIENTS_LISTENER] if security == SSL else []),
    ]
    for name in mutual:
        yield f"listener.name.{name.lower()}.ssl.client.auth", "required"
    if security != SSL:
        yield "sasl.enabled.mechanisms", SCRAM
        # Kafka does not start without it, though a listener needs no more: users are in the log.
        key = f"listener.name.{CLIENTS_LISTENER.lower()}.{SCRAM.lower()}.sasl.jaas.config"
        yield key, f"{SCRAM_LOGIN_MODULE} required;"
        if files.decoy_secret.exists():
            yield "quorumlab.scram.decoy.secret", files.decoy_secret.read_text().strip()
    yield "authorizer.class.name", _AUTHORIZER
    nodes = {each: f"User:CN={node_name(each)}" for each in all_ids}
    yield "super.users", ";".join((f"User:{ADMIN}", f"User:CN={ADMIN}", *nodes.values()))
    of_ids = ";".join(f"{each}={principal}" for each, principal in nodes.items())
    yield "quorumlab.node.principals", of_ids
    yield "quorumlab.http.auth", "basic"
    yield "quorumlab.http.users.file", str(files.http_users)
    if encrypts(security):
        yield "quorumlab.http.tls", "true"


def advertised_listeners(host: str, *, clients: int, brokers: int | None) -> str:
    """Where a broker says that it listens, if clients reach it over a proxy."""
    return f"{CLIENTS_LISTENER}://{host}:{clients},{BROKERS_LISTENER}://{host}:{brokers}"


def key_store_key(listener: str) -> str:
    """The config that says where the listener's certificate and key are."""
    return f"listener.name.{listener.lower()}.ssl.keystore.location"


def encrypts(security: str) -> bool:
    """Do clients, and those who read pages, speak TLS?"""
    return security != "sasl_plaintext"
