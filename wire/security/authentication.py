"""The authentication of one connection by SASL, from its first frame on.

           SaslHandshake             SaslAuthenticate, or bare tokens       identified
    NEW ------------------> EXCHANGE --------------------------------> DONE
                               ^                                         |
                               +-----------------------------------------+
                                 SaslHandshake, if the session has an end (KIP-368)

Before the end of the first exchange ApiVersions is served, and nothing else; after it, whatever
comes. A session that has an end outlives it only by another exchange of the same mechanism that
identifies the same user; who asks for something else after the end loses the connection. So does
who fails: the answer says no more than that. After a handshake of version 0 tokens come bare, each
in a frame of its own, without a header (KIP-43).

A listener without SASL has connections that are done from the start.

Source: KIP-43, KIP-152, KIP-255, KIP-368; Kafka's SaslServerAuthenticator,
KafkaChannel.maybeBeginServerReauthentication.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, assert_never

from wire.errors import ErrorCode
from wire.messages.features import ApiVersionsRequest
from wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from wire.security.exchanges import Challenge, Identified, Refused, ServerExchange, Unavailable
from wire.security.principals import ANONYMOUS, USER, Principal

__all__ = [
    "PASSED",
    "RECEIVED_BYTES_MAX",
    "SASL_KEYS",
    "Answered",
    "Authentication",
    "Ended",
    "Outcome",
    "Passed",
    "SaslListener",
    "SaslMechanism",
]

SASL_KEYS = frozenset((17, 36))  # of SaslHandshake and SaslAuthenticate
RECEIVED_BYTES_MAX = 512 << 10  # Kafka's sasl.server.max.receive.size
_REAUTHENTICATION_INTERVAL_MS = 1000  # once a second at most, as in Kafka's KafkaChannel


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslMechanism:
    """How a listener lets clients authenticate. `begin` makes the exchange of one of them."""

    begin: Callable[[], ServerExchange]
    session_ms: int = 0  # connections.max.reauth.ms; 0: as long as the connection


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslListener:
    """What a listener that uses SASL asks of its clients."""

    mechanisms: Mapping[str, SaslMechanism]  # by name
    timeout_seconds: float = 10.0  # for an exchange, from the connection or the handshake on
    failure_delay_seconds: float = 0.1  # connection.failed.authentication.delay.ms
    received_bytes_max: int = RECEIVED_BYTES_MAX  # of a frame, before it is done


class Passed(NamedTuple):
    """The request is to be served."""


class Answered(NamedTuple):
    """The answer to a request, or to a bare token."""

    answer: Any
    principal: Principal | None = None  # of the client, if it has just been identified


class Ended(NamedTuple):
    """The connection is to be closed; after its delay, if there is an answer."""

    reason: str
    answer: Any = None


PASSED = Passed()
Outcome = Passed | Answered | Ended


class _Exchange(NamedTuple):
    """One that is on its way."""

    name: str
    mechanism: SaslMechanism
    steps: ServerExchange
    is_bare: bool  # tokens have no headers


class Authentication:
    """What one connection has shown. Times are the wall clock's, in milliseconds."""

    def __init__(self, sasl: Callable[[], SaslListener | None]) -> None:
        """`sasl` is what each exchange goes by; None: the listener does not ask."""
        self.principal = ANONYMOUS
        self.is_done = sasl() is None  # it was identified once; it may be about it again
        self._sasl = sasl
        self._exchange: _Exchange | None = None
        self._mechanism = ""  # that the principal was identified by
        self._ends_at_ms: int | None = None  # the session, unless it is renewed
        self._renewed_at_ms = 0

    @property
    def awaits_token(self) -> bool:
        """Is the next frame a bare token?"""
        return self._exchange is not None and self._exchange.is_bare

    @property
    def is_at_work(self) -> bool:
        """Is there an exchange that must come to its end?"""
        return not self.is_done or self._exchange is not None

    @property
    def looks_at_all(self) -> bool:
        """Must it see every request, or those of SASL alone?"""
        return self.is_at_work or self._ends_at_ms is not None

    def receive(self, request: Any, version: int, now_ms: int) -> Outcome:
        exchange = self._exchange
        if exchange is not None:
            if isinstance(request, SaslAuthenticateRequest):
                return self._step(exchange, request.auth_bytes, version, now_ms)
            return Ended(f"{_name(request)} within a SASL exchange")
        if isinstance(request, SaslHandshakeRequest):
            return self._handshake(request.mechanism, version, now_ms)
        if not self.is_done:
            if isinstance(request, ApiVersionsRequest):
                return PASSED
            return Ended(f"{_name(request)} before authentication")
        if self._ends_at_ms is not None and now_ms > self._ends_at_ms:
            return Ended("the session has expired, and was not renewed")
        if isinstance(request, SaslAuthenticateRequest):
            return Answered(
                SaslAuthenticateResponse(
                    error_code=ErrorCode.ILLEGAL_SASL_STATE,
                    error_message="SaslAuthenticate request received after successful "
                    "authentication",
                )
            )
        return PASSED

    def receive_token(self, token: bytes, now_ms: int) -> Outcome:
        """Take a bare token; answers are bare as well."""
        assert self._exchange is not None, "no exchange"
        outcome = self._step(self._exchange, token, 0, now_ms)
        match outcome:
            case Answered(SaslAuthenticateResponse() as answer, principal):
                return Answered(answer.auth_bytes, principal)
            case Ended(reason):
                return Ended(reason)  # there is no way to say more
        return outcome

    def _handshake(self, mechanism: str, version: int, now_ms: int) -> Outcome:
        if self.is_done and not self._may_renew(now_ms):
            return Answered(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
        sasl = self._sasl()
        assert sasl is not None, "the listener asked once"
        enabled = tuple(sasl.mechanisms)
        if mechanism not in enabled:
            refusal = SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=enabled
            )
            return Ended(f"the SASL mechanism {mechanism[:50]!r} is not enabled", refusal)
        self._renewed_at_ms = now_ms
        wanted = sasl.mechanisms[mechanism]
        self._exchange = _Exchange(mechanism, wanted, wanted.begin(), version == 0)
        return Answered(SaslHandshakeResponse(mechanisms=enabled))

    def _may_renew(self, now_ms: int) -> bool:
        has_waited = now_ms - self._renewed_at_ms >= _REAUTHENTICATION_INTERVAL_MS
        return self._ends_at_ms is not None and has_waited

    def _step(self, exchange: _Exchange, token: bytes, version: int, now_ms: int) -> Outcome:
        if self.is_done and exchange.name != self._mechanism:
            return _failed(
                exchange,
                Refused(
                    "another SASL mechanism for the same session",
                    f"SASL mechanism '{exchange.name}' requested by client is not supported "
                    f"for re-authentication of mechanism '{self._mechanism}'",
                ),
            )
        step = exchange.steps.receive(token, now_ms)
        match step:
            case Challenge():
                return Answered(SaslAuthenticateResponse(auth_bytes=step.token))
            case Identified():
                return self._identified(exchange, step, version, now_ms)
            case Refused():
                return _failed(exchange, step)
            case Unavailable():
                return Ended(step.reason)
            case _:
                assert_never(step)

    def _identified(
        self, exchange: _Exchange, step: Identified, version: int, now_ms: int
    ) -> Outcome:
        principal = Principal(USER, step.name)
        if self.is_done and principal != self.principal:
            told = "Cannot change principals during re-authentication"
            return _failed(exchange, Refused("another user for the same session", told))
        lifetime_ms = _lifetime_ms(exchange.mechanism, step, now_ms)
        self.principal, self._mechanism = principal, exchange.name
        self.is_done, self._exchange = True, None
        self._ends_at_ms = None if lifetime_ms is None else now_ms + lifetime_ms
        answer = SaslAuthenticateResponse(
            auth_bytes=step.token,
            session_lifetime_ms=(lifetime_ms or 0) if version > 0 else 0,
        )
        return Answered(answer, principal)


def _lifetime_ms(mechanism: SaslMechanism, step: Identified, now_ms: int) -> int | None:
    """Until the session or the credential ends, whatever is first; None: it has no end."""
    ends = [mechanism.session_ms] if mechanism.session_ms > 0 else []
    if step.expires_at_ms is not None:
        ends.append(max(step.expires_at_ms - now_ms, 0))
    return min(ends, default=None)


def _failed(exchange: _Exchange, refused: Refused) -> Ended:
    told = refused.told or (
        f"Authentication failed due to invalid credentials with SASL mechanism {exchange.name}"
    )
    failure = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=told
    )
    return Ended(f"{exchange.name}: {refused.reason}", failure)


def _name(request: Any) -> str:
    return type(request).__name__.removesuffix("Request")
