"""TLS settings of server.properties, for one listener or for those who dial it.

Source: Kafka's `ssl.*`, `max.connections*` and `connections.max.idle.ms`, each of which a listener
may have for itself.
"""

import resource
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from ssl import SSLContext
from typing import TYPE_CHECKING

from controller.metadata.config_keys import BROKER_KEYS, problem
from quorumlab.config import PROPERTIES, NodeConfig
from quorumlab.listener_protocols import listener_key, of_listener
from quorumlab.listeners import names_in
from quorumlab.mode_config import ConfigError
from wire.primitives import INT32_MAX
from wire.security.connection_count import ConnectionLimits
from wire.security.protocols import ServerTls
from wire.serving import ServerLimits

if TYPE_CHECKING:
    from wire.security.tls import TlsSettings

__all__ = ["client_tls", "server_limits", "server_tls", "stores_of"]

_CONNECTIONS = "max.connections"
_OVERRIDES = "max.connections.per.ip.overrides"


def server_tls(config: NodeConfig, listener: str) -> ServerTls:
    """Raises ConfigError."""
    from wire.security.principal_mapping import PrincipalMapping
    from wire.security.tls import principal_of, server_context

    rules = _text(config, listener, "ssl.principal.mapping.rules")
    try:
        mapping = PrincipalMapping.parse(rules)
    except ValueError as error:
        raise ConfigError(f"ssl.principal.mapping.rules: {error}") from error
    try:
        context = server_context(stores_of(config, listener), datetime.now(UTC))
    except (OSError, ValueError) as error:
        raise ConfigError(f"listener {listener}: {error}") from error
    return ServerTls(
        context=context,
        principal_of=partial(principal_of, mapping=mapping),
        handshake_seconds=_number(config, listener, "quorumlab.tls.handshake.timeout.ms") / 1000,
    )


def client_tls(config: NodeConfig, listener: str) -> SSLContext:
    """For dialling that listener of a peer. Raises ConfigError."""
    from wire.security.tls import client_context

    try:
        return client_context(stores_of(config, listener), datetime.now(UTC))
    except (OSError, ValueError) as error:
        raise ConfigError(f"to dial listener {listener}: {error}") from error


def stores_of(config: NodeConfig, listener: str) -> "TlsSettings":
    from wire.security.stores import StoreSettings
    from wire.security.tls import TlsSettings

    def given(key: str) -> str | None:
        return of_listener(config.given, listener, key)

    return TlsSettings(
        key_store=StoreSettings(
            name="ssl.keystore",
            type=_text(config, listener, "ssl.keystore.type"),
            location=given("ssl.keystore.location"),
            password=given("ssl.keystore.password"),
            certificates=given("ssl.keystore.certificate.chain"),
            key=given("ssl.keystore.key"),
            key_password=given("ssl.key.password"),
        ),
        trust_store=StoreSettings(
            name="ssl.truststore",
            type=_text(config, listener, "ssl.truststore.type"),
            location=given("ssl.truststore.location"),
            password=given("ssl.truststore.password"),
            certificates=given("ssl.truststore.certificates"),
        ),
        client_auth=_text(config, listener, "ssl.client.auth"),
        protocol=_text(config, listener, "ssl.protocol"),
        enabled_protocols=names_in(_text(config, listener, "ssl.enabled.protocols")),
        cipher_suites=names_in(_text(config, listener, "ssl.cipher.suites")),
        identification=_text(config, listener, "ssl.endpoint.identification.algorithm"),
    )


def server_limits(config: NodeConfig, listener: str) -> ServerLimits:
    """Raises ConfigError. No more connections than half of what the process may have open."""
    descriptors_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    possible = max(descriptors_max // 2, 1)
    return ServerLimits(
        frame_bytes_max=config.number("socket.request.max.bytes"),
        connections=ConnectionLimits(
            of_all=min(_number(config, "", _CONNECTIONS), possible),
            of_listener=min(_own_connections(config, listener), possible),
            of_host=_number(config, listener, "max.connections.per.ip"),
            of_hosts=_overrides(_text(config, listener, _OVERRIDES)),
            is_protected=_is_protected(config, listener),
        ),
        first_frame_seconds=_number(config, listener, "quorumlab.first.request.timeout.ms") / 1000,
        idle_seconds=_number(config, listener, "connections.max.idle.ms") / 1000,
    )


def _own_connections(config: NodeConfig, listener: str) -> int:
    is_given = listener_key(listener, _CONNECTIONS) in config.given
    return _number(config, listener, _CONNECTIONS) if is_given else INT32_MAX


def _is_protected(config: NodeConfig, listener: str) -> bool:
    """Is it the listener between brokers, beside one for clients?"""
    for_clients = {each.name for each in config.listeners} - set(config.controller_listeners)
    return listener == config.inter_broker_listener and len(for_clients) > 1


def _overrides(text: str) -> Mapping[str, int]:
    """host:limit,...; the host of an IPv6 address may stand in brackets."""
    found = {}
    for item in names_in(text):
        host, colon, limit = item.rpartition(":")
        if not (colon and limit.isdecimal()):
            raise ConfigError(f"{_OVERRIDES}: {item!r} is not address:limit")
        found[host.strip("[]")] = int(limit)
    return found


def _text(config: NodeConfig, listener: str, key: str) -> str:
    found = of_listener(config.given, listener, key)
    if found is None:
        return str(BROKER_KEYS[key].default or "") if key in BROKER_KEYS else str(_default(key))
    wrong = problem(BROKER_KEYS[key], found) if key in BROKER_KEYS else None
    if wrong is not None:
        raise ConfigError(wrong)
    return found


def _default(key: str) -> object:
    return PROPERTIES[key].default


def _number(config: NodeConfig, listener: str, key: str) -> int:
    found = _text(config, listener, key)
    try:
        return int(found)
    except ValueError as error:
        raise ConfigError(f"{key}={found}: expected a whole number") from error
