"""How each listener is secured, as server.properties says: names of listeners to protocols.

Source: Kafka's `listener.security.protocol.map`, `security.inter.broker.protocol` and the settings
of one listener, `listener.name.{name}.{key}`, which win over `{key}` itself; those of a SASL
mechanism on it are `listener.name.{name}.{mechanism}.{key}`.
"""

from collections.abc import Collection, Mapping

from quorumlab.mode_config import ConfigError
from wire.security.security_protocol import SecurityProtocol

__all__ = [
    "INTER_BROKER_PROTOCOL",
    "MECHANISMS",
    "PROTOCOL_MAP",
    "bare_key",
    "listener_key",
    "mechanism_key",
    "of_listener",
    "of_mechanism",
    "protocols_of",
]

PROTOCOL_MAP = "listener.security.protocol.map"
INTER_BROKER_PROTOCOL = "security.inter.broker.protocol"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")  # of SASL
_PREFIX = "listener.name."
_NAMES = ", ".join(protocol.name for protocol in SecurityProtocol)


def protocols_of(
    given: Mapping[str, str], names: Collection[str], controller_names: Collection[str]
) -> dict[str, SecurityProtocol]:
    """The protocol of each listener, by name. Raises ConfigError.

    Without a map, a listener's name is its protocol, and controllers speak PLAINTEXT.
    """
    if PROTOCOL_MAP in given:
        known = dict(_pair(text) for text in given[PROTOCOL_MAP].split(",") if text.strip())
    else:
        known = dict(SecurityProtocol.__members__)
        known.update(dict.fromkeys(controller_names, SecurityProtocol.PLAINTEXT))
    missing = [name for name in (*names, *controller_names) if name not in known]
    if missing:
        raise ConfigError(
            f"{PROTOCOL_MAP}: no protocol for listener {missing[0]}: add {missing[0]}:PROTOCOL, "
            f"which is one of {_NAMES}"
        )
    return {name: known[name] for name in (*names, *controller_names)}


def _pair(text: str) -> tuple[str, SecurityProtocol]:
    name, colon, protocol = (part.strip() for part in text.partition(":"))
    if not colon or protocol not in SecurityProtocol.__members__:
        raise ConfigError(f"{PROTOCOL_MAP}: {text.strip()!r} is not NAME:PROTOCOL, of {_NAMES}")
    return name, SecurityProtocol[protocol]


def of_listener(given: Mapping[str, str], listener: str, key: str) -> str | None:
    """A setting as it holds on one listener."""
    return given.get(listener_key(listener, key), given.get(key))


def listener_key(listener: str, key: str) -> str:
    """`listener.name.external.max.connections`."""
    return f"{_PREFIX}{listener.lower()}.{key}"


def of_mechanism(given: Mapping[str, str], listener: str, mechanism: str, key: str) -> str | None:
    """A setting as it holds for one SASL mechanism on one listener."""
    own = of_listener(given, listener, f"{mechanism.lower()}.{key}")
    return of_listener(given, listener, key) if own is None else own


def mechanism_key(listener: str, mechanism: str, key: str) -> str:
    """`listener.name.external.plain.sasl.jaas.config`."""
    return listener_key(listener, f"{mechanism.lower()}.{key}")


def bare_key(key: str) -> str:
    """`listener.name.external.ssl.client.auth`: `ssl.client.auth`."""
    if not key.startswith(_PREFIX):
        return key
    bare = key.removeprefix(_PREFIX).partition(".")[2]
    for mechanism in MECHANISMS:
        bare = bare.removeprefix(f"{mechanism.lower()}.")
    return bare
