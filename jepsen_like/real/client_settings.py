"""How a blocking client speaks to a cluster: over TLS, with which certificates, as which user."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wire.security.security_protocol import SecurityProtocol

if TYPE_CHECKING:
    from wire.security.tls import TlsSettings  # knows certificates, which most clients need not

__all__ = ["PLAIN", "ClientSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: "TlsSettings | None" = None  # exactly where the protocol uses TLS
    mechanism: str = ""  # of SASL: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
    username: str = ""
    password: str = field(default="", repr=False)


PLAIN = ClientSettings()
