"""The arguments of a reader when it is started: whom to ask, and what opens the cluster.

Credentials come by the environment, which only the same user may read: a command line is for
everybody. A node's reader has those of its node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jepsen_like.real.client_settings import PLAIN, ClientSettings
from jepsen_like.real.pages import PageAccess
from quorumlab.client_properties import client_settings_of
from quorumlab.config import NodeConfig
from quorumlab.http_settings import page_access_of
from quorumlab.listener_protocols import of_listener, of_mechanism
from wire.security.security_protocol import SecurityProtocol

__all__ = ["KEYS", "ReaderKeys", "keys_of", "of_any_kafka", "of_node"]

KEYS = "QUORUMLAB_READER_KEYS"  # the variable
_SSL = (
    *("ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password"),
    *("ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password"),
    *("ssl.truststore.certificates", "ssl.keystore.certificate.chain", "ssl.keystore.key"),
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderKeys:
    controllers: ClientSettings = PLAIN
    brokers: ClientSettings = PLAIN
    broker_listener: str = ""  # where these speak to each other; empty: their first will do
    pages: PageAccess = field(default_factory=PageAccess)


def of_node(config: NodeConfig, http_port: int) -> Mapping[str, Any]:
    """Raises ConfigError."""
    own = {config.node_id: (_reachable(config.http_host), http_port)}
    opened = {config.controller_listener, config.inter_broker_listener}
    servers = [
        (_reachable(each.host), each.port, each.name == config.controller_listener)
        for each in config.listeners
        if each.name in opened or not _is_secured(config)
    ]
    controllers = (*config.voters, *config.bootstrap_servers)
    servers += [(each.host, each.port, True) for each in controllers]
    return {
        "keys": _told_keys(config),
        "node": config.node_id,
        "nodes": {**config.http_nodes, **own},
        "servers": list(dict.fromkeys(servers)),
        "design": "quorum" if config.design is None else config.design.name,
        "chaos": _run_around(config.metadata_dir.resolve()),
    }


def _run_around(metadata_dir: Path) -> str | None:
    """A chaos run keeps its nodes in RUN/cluster/1/data."""
    match metadata_dir.parents:
        case [_, cluster, run, *_] if cluster.name == "cluster":
            return str(run)
    return None


def of_any_kafka(
    servers: Sequence[tuple[str, int]], client: Mapping[str, str], chaos: Path | None = None
) -> Mapping[str, Any]:
    """`client`: the keys of a client.properties. `servers` are brokers or controllers."""
    return {
        "keys": {"controllers": client, "brokers": client, "broker_listener": "", "pages": {}},
        "node": None,
        "nodes": {},
        "servers": [(host, port, False) for host, port in servers],
        "design": "quorum",
        "chaos": None if chaos is None else str(chaos),
    }


def _reachable(host: str) -> str:
    """Where a listener that is bound to all addresses is found on this machine."""
    return {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104


def _is_secured(config: NodeConfig) -> bool:
    return any(each is not SecurityProtocol.PLAINTEXT for each in config.protocols.values())


def _told_keys(config: NodeConfig) -> Mapping[str, Any]:
    """Raises ConfigError."""
    pages = page_access_of(config)
    return {
        "controllers": _as_client(config, config.controller_listener, "controller.protocol"),
        "brokers": _as_client(config, config.inter_broker_listener, "inter.broker.protocol"),
        "broker_listener": config.inter_broker_listener if _is_secured(config) else "",
        "pages": {"authorization": pages.authorization, "authorities": pages.authorities},
    }


def keys_of(told: Mapping[str, Any]) -> ReaderKeys:
    """Raises ValueError for credentials that the blocking client cannot show."""
    return ReaderKeys(
        controllers=client_settings_of(told["controllers"]),
        brokers=client_settings_of(told["brokers"]),
        broker_listener=told["broker_listener"],
        pages=PageAccess(**told["pages"]),
    )


def _as_client(config: NodeConfig, listener: str, peer: str) -> Mapping[str, str]:
    """How the node itself dials that listener, in a client's words."""
    given = config.given
    protocol = config.protocols.get(listener, SecurityProtocol.PLAINTEXT)
    found = {key: of_listener(given, listener, key) for key in _SSL}
    mechanism = given.get(f"sasl.mechanism.{peer}", "GSSAPI")
    return {
        "security.protocol": protocol.name,
        **{key: value for key, value in found.items() if value is not None},
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": of_mechanism(given, listener, mechanism, "sasl.jaas.config") or "",
    }
