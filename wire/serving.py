"""The server of a listener and its connections: the part that both know."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from wire.admission import Admission
from wire.api_table import ListenerKind
from wire.apis import DecodedRequest
from wire.framing import FRAME_BYTES_MAX, Traffic
from wire.message import Message
from wire.security.connection_count import ConnectionLimits
from wire.security.principals import ANONYMOUS, Forwarder, Principal
from wire.security.protocols import ServerSecurity

__all__ = ["Owner", "Received", "ServerLimits"]

C = TypeVar("C", contravariant=True)  # a connection


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    frame_bytes_max: int = FRAME_BYTES_MAX
    outstanding_max: int = 100  # requests of one connection without an answer
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    first_frame_seconds: float = 30.0  # from the connection to its first whole request
    idle_seconds: float = 600.0  # Kafka's default of connections.max.idle.ms
    output_bytes_max: int = 1 << 20  # above it, a connection that does not read is not read either


class Received(Message):
    """A request to be answered with `Server.reply(token, body)`, once.

    If it came in an envelope, `request` is the inner one, `client_host` and `principal` are the
    client's own, and `forwarder` is whose envelope it was.
    """

    token: int
    request: DecodedRequest
    listener: str
    client_host: str
    principal: Principal = ANONYMOUS
    forwarder: Forwarder | None = None


class Owner(Protocol[C]):
    """The server of a connection."""

    @property
    def listener(self) -> str: ...

    @property
    def kind(self) -> ListenerKind: ...

    @property
    def security(self) -> ServerSecurity: ...

    @property
    def limits(self) -> ServerLimits: ...

    @property
    def traffic(self) -> Traffic: ...

    @property
    def tokens(self) -> Iterator[int]: ...

    @property
    def admit(self) -> Callable[[str], Admission]: ...

    @property
    def receive(self) -> Callable[[Received], None]: ...

    def opened(self, connection: C, host: str) -> str | None:
        """Why there is no room for it."""
        ...

    def lost(self, connection: C, tokens: list[int]) -> None:
        """It is gone, and so are the requests that it had no answers to."""
        ...

    def expect_reply(self, token: int, connection: C) -> None: ...
