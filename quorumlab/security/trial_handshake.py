"""Whether nodes let each other in: a handshake in memory, before the stores are used.

Peers have the same stores, or will have, so a node whose new key store its trust store refuses, the
old one or the new, would be cut off. Who changes both begins with the trust store. No host name is
checked: a handshake in memory has none.

Source: Kafka's SslFactory.SslEngineValidator (KIP-226), for the listener between brokers.
"""

import ssl
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from quorumlab.config import NodeConfig
from quorumlab.mode_config import ConfigError
from quorumlab.security.tls_settings import stores_of

__all__ = ["Ends", "check_handshakes", "ends_between_brokers"]

_FLIGHTS_MAX = 10  # a TLS 1.2 handshake with certificates of both has four


class Ends(NamedTuple):
    """The two ends of a connection between brokers."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def ends_between_brokers(config: NodeConfig) -> Ends | None:
    """None where brokers do not speak TLS with each other. Raises ConfigError."""
    listener = config.inter_broker_listener
    if not listener or not config.protocols[listener].uses_tls:
        return None
    from wire.security.tls import client_context, server_context

    stores, now = stores_of(config, listener), datetime.now(UTC)
    try:
        return Ends(
            server_context(stores, now), client_context(replace(stores, identification=""), now)
        )
    except (OSError, ValueError) as error:
        raise ConfigError(f"listener {listener}: {error}") from error


def check_handshakes(old: Ends, new: Ends) -> None:
    """Raises ConfigError if a node with the old stores and one with the new cannot connect."""
    for server, client, dialling in (
        (new.server, old.client, "the stores in use cannot connect to one with the new ones"),
        (old.server, new.client, "the new stores cannot connect to one with those in use"),
    ):
        try:
            _shake(server, client)
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", "") or error.reason or error
            if old is new:
                dialling = "its own stores cannot connect to another such node"
            raise ConfigError(f"between brokers, a node with {dialling}: {reason}") from error


def _shake(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    waiting = [
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(_FLIGHTS_MAX):
        for end in list(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
        if not waiting:
            return
    raise ssl.SSLError("the handshake does not end")
