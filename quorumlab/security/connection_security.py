"""How a node's connections are secured: what its listeners ask, and what it shows to its peers."""

from collections.abc import Callable

from quorumlab.config import NodeConfig
from quorumlab.security.sasl import sasl_listener, sasl_login
from quorumlab.security.scram_users import ScramUsers
from quorumlab.security.tls_settings import client_tls, server_tls
from wire.security.protocols import ClientSecurity, ServerSecurity

__all__ = ["client_security", "server_security"]

_BETWEEN_BROKERS = ("replica-", "transaction-")  # so begin the channels to brokers of a quorum


def server_security(config: NodeConfig, listener: str, users: ScramUsers) -> ServerSecurity:
    """Raises ConfigError."""
    protocol = config.protocols[listener]
    return ServerSecurity(
        protocol=protocol,
        tls=server_tls(config, listener) if protocol.uses_tls else None,
        sasl=sasl_listener(config, listener, users) if protocol.uses_sasl else None,
    )


def client_security(config: NodeConfig) -> Callable[[str], ClientSecurity]:
    """How the connections of a channel are secured: it goes to controllers, or between brokers.

    Raises ConfigError.
    """
    to_controllers = _of_peer(config, config.controller_listener)
    to_brokers = _of_peer(config, config.inter_broker_listener)

    def security_of(channel: str) -> ClientSecurity:
        is_to_broker = config.design is not None or channel.startswith(_BETWEEN_BROKERS)
        return to_brokers if is_to_broker else to_controllers

    return security_of


def _of_peer(config: NodeConfig, listener: str) -> ClientSecurity:
    if not listener:  # a controller dials no brokers, and in ZooKeeper mode nobody a controller
        return ClientSecurity()
    protocol = config.protocols[listener]
    return ClientSecurity(
        protocol=protocol,
        tls=client_tls(config, listener) if protocol.uses_tls else None,
        sasl=sasl_login(config, listener) if protocol.uses_sasl else None,
    )
