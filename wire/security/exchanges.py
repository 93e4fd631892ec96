"""A SASL exchange, whatever the mechanism, takes tokens and says how it goes on.

Exchanges are pure: nonces, credentials and the time come from outside. A mechanism's own module
has the server's side and the client's. What a peer sends never raises here: it is `Refused`.

Source: RFC 4422.
"""

from typing import NamedTuple, Protocol

__all__ = [
    "Challenge",
    "ClientExchange",
    "Finished",
    "Identified",
    "Refused",
    "ServerExchange",
    "ServerStep",
    "Unavailable",
    "text_of",
]


class Challenge(NamedTuple):
    """The exchange goes on: a token for the peer."""

    token: bytes


class Identified(NamedTuple):
    """The client has proven to be `name`. The last token is for it."""

    name: str
    token: bytes = b""
    expires_at_ms: int | None = None  # of the credential, by the wall clock


class Refused(NamedTuple):
    """The exchange has failed. `told` goes to the client; `reason` only into the log.

    Without `told` a client hears the same for whatever was wrong, so that it learns of no user.
    """

    reason: str
    told: str | None = None


class Unavailable(NamedTuple):
    """Nobody can say: the connection is closed without an answer, and the client tries again."""

    reason: str


class Finished(NamedTuple):
    """The client has seen all that it asks for of the server."""


ServerStep = Challenge | Identified | Refused | Unavailable
ClientStep = Challenge | Finished | Refused


class ServerExchange(Protocol):
    def receive(self, token: bytes, now_ms: int) -> ServerStep:
        """Take the client's next token. `now_ms` is the wall clock's."""
        ...


class ClientExchange(Protocol):
    def first(self) -> bytes:
        """The token that begins: every mechanism here lets the client begin."""
        ...

    def receive(self, token: bytes) -> ClientStep:
        """Take the server's next token."""
        ...


def text_of(token: bytes) -> str | None:
    """A token as text; None if it is none."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return None
