"""Credentials of clients whose bytes a proxy reads, though the brokers behind it speak TLS.

The addresses that brokers name have to be changed on the way, so that TLS ends at the proxy: it
shows a certificate of an authority that is made for this run, by which its clients judge it, and
asks the brokers as the clients would have. Passwords go through it as the clients send them.
"""

from dataclasses import replace
from datetime import UTC, datetime

from jepsen_like.real.client_handshakes import tls_context
from jepsen_like.real.client_settings import ClientSettings
from jepsen_like.real.credentials import Credentials, ProxyTls
from quorumlab.client_properties import librdkafka_settings
from quorumlab.security.certificates import Authority
from wire.security.tls import TlsSettings

__all__ = ["given_credentials"]

_NAME = "quorumlab proxies"


def given_credentials(settings: ClientSettings) -> Credentials:
    """Those of clients of somebody else's cluster, with proxies before it or without."""
    direct = Credentials(brokers=settings, librdkafka=librdkafka_settings(settings))
    return direct if settings.tls is None else replace(direct, proxied=_proxied(settings))


def _proxied(settings: ClientSettings) -> ProxyTls:
    from wire.security.tls import server_context

    assert settings.tls is not None, settings
    authority = Authority.new(_NAME)
    met = replace(settings, tls=_trusting(authority))
    return ProxyTls(
        shown=server_context(_identity(authority), datetime.now(UTC)),
        asking=tls_context(settings.tls),
        credentials=Credentials(brokers=met, librdkafka=librdkafka_settings(met)),
    )


def _trusting(authority: Authority) -> TlsSettings:
    from wire.security.stores import StoreSettings
    from wire.security.tls import TlsSettings

    trusted = authority.pem.decode()
    return TlsSettings(
        trust_store=StoreSettings(name="ssl.truststore", type="PEM", certificates=trusted)
    )


def _identity(authority: Authority) -> TlsSettings:
    from wire.security.stores import StoreSettings
    from wire.security.tls import TlsSettings

    pem = authority.signed_pem(_NAME).decode()
    return TlsSettings(
        key_store=StoreSettings(name="ssl.keystore", type="PEM", certificates=pem, key=pem)
    )
