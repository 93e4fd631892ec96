"""The listeners of a node as its driver opens them: each with its kind, security and limits."""

from quorum.node.listening import Listener
from quorumlab.config import NodeConfig
from quorumlab.security.connection_security import server_security
from quorumlab.security.scram_users import ScramUsers
from quorumlab.security.tls_settings import server_limits
from wire.api_table import ListenerKind

__all__ = ["driver_listeners", "listener_kind"]


def driver_listeners(config: NodeConfig, users: ScramUsers) -> list[Listener]:
    """Raises ConfigError."""
    return [
        Listener(
            name=listener.name,
            kind=listener_kind(config, listener.name),
            host=listener.host,
            port=listener.port,
            security=server_security(config, listener.name, users),
            limits=server_limits(config, listener.name),
        )
        for listener in config.listeners
    ]


def listener_kind(config: NodeConfig, listener: str) -> ListenerKind:
    if config.design is not None:
        return ListenerKind.ZOOKEEPER
    is_control = listener in config.controller_listeners
    return ListenerKind.CONTROLLER if is_control else ListenerKind.BROKER
