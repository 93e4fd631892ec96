"""Authentication by SASL: the choice of a mechanism, and the tokens of its exchange (KIP-152)."""

from wire.message import Message
from wire.messages.endpoints import ExplainedOutcome, Outcome


class SaslHandshakeRequest(Message):
    mechanism: str


class SaslHandshakeResponse(Outcome):
    mechanisms: tuple[str, ...] = ()  # that the listener enables


class SaslAuthenticateRequest(Message):
    auth_bytes: bytes

    def __repr__(self) -> str:
        """Leave out the token: PLAIN's is the password."""
        return f"SaslAuthenticateRequest({len(self.auth_bytes)} bytes)"


class SaslAuthenticateResponse(ExplainedOutcome):
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0  # until re-authentication is due (KIP-368); 0: never
