"""PLAIN: a name and a password as they are (RFC 4616). Use it over TLS only.

A user may ask to act as nobody but itself, as in Kafka's PlainSaslServer.
"""

import hmac
from collections.abc import Mapping

from wire.security.exchanges import (
    Finished,
    Identified,
    Refused,
    ServerStep,
    text_of,
)

__all__ = ["PLAIN", "PlainClient", "PlainServer"]

PLAIN = "PLAIN"
_TOLD = "Authentication failed: Invalid username or password"


class PlainServer:
    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords  # by user

    def receive(self, token: bytes, now_ms: int) -> ServerStep:
        text = text_of(token)
        parts = [] if text is None else text.split("\0")
        if len(parts) != 3:
            return Refused("a PLAIN token is not authzid NUL authcid NUL password")
        acts_as, user, password = parts
        # A user that is not known costs the same comparison.
        expected = self._passwords.get(user, "")
        is_right = hmac.compare_digest(password.encode(), expected.encode())
        if not (is_right and password and user in self._passwords):
            return Refused("invalid username or password", _TOLD)
        if acts_as not in ("", user):
            return Refused("the client wants to act as somebody else")
        return Identified(user)


class PlainClient:
    def __init__(self, user: str, password: str) -> None:
        self._token = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        return self._token

    def receive(self, token: bytes) -> Finished | Refused:
        return Refused("the server challenges a PLAIN client") if token else Finished()
