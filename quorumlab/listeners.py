"""The addresses that a node listens on and advertises, and those between brokers.

Source: Kafka's `listeners`, `advertised.listeners`, `controller.listener.names`,
`inter.broker.listener.name` and `security.inter.broker.protocol`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from quorumlab.listener_protocols import INTER_BROKER_PROTOCOL
from quorumlab.mode_config import ConfigError
from wire.security.security_protocol import SecurityProtocol

__all__ = [
    "Listener",
    "advertised_listeners",
    "host_and_port",
    "inter_broker_listener",
    "names_in",
    "own_listeners",
]


@dataclass(frozen=True, slots=True)
class Listener:
    name: str
    host: str
    port: int


def names_in(raw: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (raw or "").split(",") if name.strip())


def host_and_port(text: str, key: str) -> tuple[str, int]:
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{key}: {text!r} is not host:port")
    return host.strip("[]"), int(port)


def _listener(text: str, key: str) -> Listener:
    name, separator, address = text.partition("://")
    if not (separator and name.strip()):  # what comes from inside the process has no listener
        raise ConfigError(f"{key}: {text!r} is not NAME://host:port")
    host, port = host_and_port(address, key)
    return Listener(name.strip(), host, port)


def own_listeners(
    given: Mapping[str, str], roles: frozenset[str], controller_names: tuple[str, ...]
) -> tuple[Listener, ...]:
    raw = names_in(given.get("listeners"))
    if not raw and "broker" in roles and "controller" not in roles:
        raw = ("PLAINTEXT://:9092",)  # Kafka's default
    listeners = tuple(_listener(text, "listeners") for text in raw)
    names = [listener.name for listener in listeners]
    if "controller" in roles and controller_names[0] not in names:
        raise ConfigError(
            f"listeners: a controller needs a listener {controller_names[0]}://host:port"
        )
    if "broker" in roles and not set(names) - set(controller_names):
        raise ConfigError("listeners: a broker needs a listener of its own for clients")
    if "controller" not in roles and set(names) & set(controller_names):
        raise ConfigError(
            "listeners: a node that is only a broker may not have a controller listener"
        )
    return listeners


def advertised_listeners(
    given: Mapping[str, str], listeners: tuple[Listener, ...]
) -> tuple[Listener, ...]:
    stated = {
        item.name: item
        for item in (
            _listener(text, "advertised.listeners")
            for text in names_in(given.get("advertised.listeners"))
        )
    }
    unknown = sorted(set(stated) - {listener.name for listener in listeners})
    if unknown:
        raise ConfigError(f"advertised.listeners: {unknown[0]} is not one of listeners")
    return tuple(
        stated.get(item.name, Listener(item.name, item.host or "localhost", item.port))
        for item in listeners
    )


def inter_broker_listener(
    given: Mapping[str, str],
    listeners: tuple[Listener, ...],
    controller_names: tuple[str, ...],
    roles: frozenset[str],
    protocols: Mapping[str, SecurityProtocol],
) -> str:
    """Named, or the one that has the protocol between brokers, or the first."""
    if "broker" not in roles:
        return ""
    if "inter.broker.listener.name" in given and INTER_BROKER_PROTOCOL in given:
        raise ConfigError(
            f"inter.broker.listener.name and {INTER_BROKER_PROTOCOL}: leave one of them out"
        )
    names = [item.name for item in listeners if item.name not in controller_names]
    protocol = given.get(INTER_BROKER_PROTOCOL, SecurityProtocol.PLAINTEXT.name)
    spoken = [name for name in names if protocols[name].name == protocol]
    if INTER_BROKER_PROTOCOL in given and not spoken:
        raise ConfigError(f"{INTER_BROKER_PROTOCOL}: no listener speaks {protocol}")
    wanted = given.get("inter.broker.listener.name", (spoken or names)[0])
    if wanted not in names:
        raise ConfigError(f"inter.broker.listener.name: {wanted} is not one of listeners")
    return wanted
