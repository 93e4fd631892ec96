"""A blocking client shakes hands before it asks: TLS by `ssl`, SASL by its pure exchanges."""

import secrets
import ssl
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from jepsen_like.real.client_settings import ClientSettings
from wire.security.client_authentication import SaslDialogue, authenticate
from wire.security.exchanges import ClientExchange
from wire.security.plain import PLAIN, PlainClient
from wire.security.scram import SCRAM_SHA_256, SCRAM_SHA_512, ScramClient

if TYPE_CHECKING:
    from wire.security.tls import TlsSettings

__all__ = ["sasl_dialogue", "tls_context"]

_NONCE_BYTES = 24
_FAMILIES = {each.mechanism: each for each in (SCRAM_SHA_256, SCRAM_SHA_512)}


@lru_cache(maxsize=16)  # of a user, and of each node
def tls_context(tls: "TlsSettings") -> ssl.SSLContext:
    """Raises StoreError."""
    from wire.security.tls import client_context

    return client_context(tls, datetime.now(UTC))


def sasl_dialogue(settings: ClientSettings) -> SaslDialogue:
    """What to ask the server, until it knows the user."""
    user, password = settings.username, settings.password
    exchange: ClientExchange
    if settings.mechanism == PLAIN:
        exchange = PlainClient(user, password)
    else:
        nonce = secrets.token_urlsafe(_NONCE_BYTES)
        exchange = ScramClient(_FAMILIES[settings.mechanism], user, password, nonce=nonce)
    return authenticate(settings.mechanism, exchange)
