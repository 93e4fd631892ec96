"""How a connection is secured: Kafka's security protocols, for those who listen and who dial."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass

from wire.security.authentication import SaslListener
from wire.security.client_authentication import SaslLogin
from wire.security.principals import Principal
from wire.security.security_protocol import SecurityProtocol

__all__ = ["ClientSecurity", "ServerSecurity", "ServerTls"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """How a listener shakes hands, and whom it takes a certificate for."""

    context: ssl.SSLContext
    principal_of: Callable[[bytes | None], Principal]  # of a certificate in DER, or of none
    handshake_seconds: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSecurity:
    """What a listener asks of its clients."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    sasl: SaslListener | None = None  # exactly where the protocol uses SASL
    tls: ServerTls | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecurity:
    """What is shown to a peer that is dialled."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    sasl: SaslLogin | None = None  # exactly where the protocol uses SASL
    tls: ssl.SSLContext | None = None
