"""The client's side of an authentication: what to ask of a server, one after the other.

    dialogue = authenticate("PLAIN", PlainClient("alice", "secret"))
    request = next(dialogue)
    while True:
        request = dialogue.send(ask(request))  # StopIteration has the lifetime of the session

A generator, so that clients that wait and clients that do not can both go by it.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass

from wire.errors import ErrorCode
from wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from wire.security.exchanges import Challenge, ClientExchange, Finished, Refused

__all__ = ["AuthenticationFailed", "SaslAnswer", "SaslDialogue", "SaslLogin", "authenticate"]

_STEPS_MAX = 10  # of an exchange: those here take two or three

SaslAnswer = SaslHandshakeResponse | SaslAuthenticateResponse
SaslDialogue = Generator[SaslHandshakeRequest | SaslAuthenticateRequest, SaslAnswer, int]


class AuthenticationFailed(ConnectionError):
    """The server refuses us, or has not proven that it knows us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslLogin:
    """What a client shows. `begin` makes the exchange of one connection."""

    mechanism: str
    begin: Callable[[], ClientExchange]

    def dialogue(self) -> SaslDialogue:
        return authenticate(self.mechanism, self.begin())


def authenticate(mechanism: str, exchange: ClientExchange) -> SaslDialogue:
    """Yields requests and is sent their answers; returns for how many ms the session holds.

    0: for as long as the connection. Handshakes are of version 1. Raises AuthenticationFailed.
    """
    chosen = yield SaslHandshakeRequest(mechanism=mechanism)
    if chosen.error_code is not ErrorCode.NONE:
        offered = ", ".join(getattr(chosen, "mechanisms", ()))
        raise AuthenticationFailed(
            f"the server refuses {mechanism}: {chosen.error_code.name}; it has: {offered or 'none'}"
        )
    token = exchange.first()
    for _ in range(_STEPS_MAX):
        answer = yield SaslAuthenticateRequest(auth_bytes=token)
        if not isinstance(answer, SaslAuthenticateResponse):
            raise AuthenticationFailed("the server does not keep to the exchange")
        if answer.error_code is not ErrorCode.NONE:
            told = answer.error_message or answer.error_code.name
            raise AuthenticationFailed(f"authentication by {mechanism} failed: {told}")
        match exchange.receive(answer.auth_bytes):
            case Challenge(token):
                continue
            case Refused(reason):
                raise AuthenticationFailed(f"authentication by {mechanism} failed: {reason}")
            case Finished():
                return answer.session_lifetime_ms
    raise AuthenticationFailed(f"the exchange of {mechanism} does not end")
