"""What the reader beside a node opens the cluster with: the node's own credentials.

The node tells them to its reader by the environment, which only the same user may read: a command
line is for everybody.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jepsen_like.real.client_settings import PLAIN, ClientSettings
from jepsen_like.real.pages import PageAccess
from quorumlab.client_properties import client_settings_of
from quorumlab.config import NodeConfig
from quorumlab.http_settings import page_access_of
from quorumlab.listener_protocols import of_listener, of_mechanism
from wire.security.security_protocol import SecurityProtocol

__all__ = ["KEYS", "ReaderKeys", "is_secured", "keys_of", "told_keys"]

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


def is_secured(config: NodeConfig) -> bool:
    return any(each is not SecurityProtocol.PLAINTEXT for each in config.protocols.values())


def told_keys(config: NodeConfig) -> Mapping[str, Any]:
    """Raises ConfigError."""
    pages = page_access_of(config)
    return {
        "controllers": _as_client(config, config.controller_listener, "controller.protocol"),
        "brokers": _as_client(config, config.inter_broker_listener, "inter.broker.protocol"),
        "broker_listener": config.inter_broker_listener if is_secured(config) else "",
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
