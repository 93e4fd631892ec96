"""What meets bytes of nobody: every target takes any bytes, and either understands or refuses them.

A target raises only for a defect: a refusal that callers expect is caught here, by its type.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any

from controller.metadata.security import Mechanism, server_key, stored_key
from wire.api_table import ListenerKind
from wire.apis import UnsupportedVersion, decode_request
from wire.errors import ErrorCode
from wire.forwarding import Opened, unwrap
from wire.framing import FrameError, FrameReader, Traffic
from wire.messages.registration import EnvelopeRequest
from wire.security.authentication import SaslListener, SaslMechanism
from wire.security.exchanges import Finished, Identified, Refused, ServerExchange
from wire.security.oauthbearer import OauthbearerServer, TokenRules, key_set
from wire.security.plain import PlainServer
from wire.security.principal_mapping import PrincipalMapping
from wire.security.principals import decode_principal
from wire.security.protocols import ServerSecurity
from wire.security.scram import SCRAM_SHA_256, ScramClient, ScramCredential, ScramServer
from wire.security.security_protocol import SecurityProtocol
from wire.serving import Received
from wire.tcp_connection import ServedConnection
from wire.tcp_server import Server
from wire.varint import Malformed

__all__ = ["SEEDS", "TARGETS", "Target"]

Target = Callable[[bytes], None]
_REFUSED = (FrameError, Malformed, UnsupportedVersion)


def frames(data: bytes) -> None:
    """Frames out of a stream that comes in pieces, the first byte of which says how large."""
    size = 1 + data[0] if data else 1
    reader, whole = FrameReader(frame_bytes_max=1 << 16), FrameReader(frame_bytes_max=1 << 16)
    whole.feed(data[1:])
    taken: list[bytes] = []
    try:
        for at in range(1, len(data), size):
            reader.feed(data[at : at + size])
            taken.extend(_taken(reader))
    except FrameError:
        return
    assert taken == list(_taken(whole)), "pieces make other frames"


def _taken(reader: FrameReader) -> Iterator[bytes]:
    while (frame := reader.next_frame()) is not None:
        yield frame


def _requests(kind: ListenerKind) -> Target:
    def target(data: bytes) -> None:
        try:
            request = decode_request(data, kind)
        except _REFUSED:
            return
        assert request.body is not None

    return target


def api_versions(data: bytes) -> None:
    """Behind a header of ApiVersions, the version in the first byte."""
    version = data[0] % 6 if data else 0
    head = b"\0\x12" + version.to_bytes(2) + b"\0\0\0\x01" + b"\xff\xff"
    with suppress(*_REFUSED):
        decode_request(head + data[1:], ListenerKind.BROKER)


def envelope(data: bytes) -> None:
    """A request, a principal and an address, cut where the first bytes say."""
    if len(data) < 2:
        return
    first, second = 2 + data[0], 2 + data[0] + data[1]
    opened = unwrap(
        EnvelopeRequest(
            request_data=data[second:],
            request_principal=data[2:first],
            client_host_address=data[first:second],
        )
    )
    assert isinstance(opened, Opened | ErrorCode)


def principal(data: bytes) -> None:
    with suppress(Malformed):
        decode_principal(data)


_MAPPING = PrincipalMapping.parse("RULE:^CN=(.*?),OU=(.*?)(,.*)?$/$1@$2/L,DEFAULT")


def mapping(data: bytes) -> None:
    """The distinguished name of a certificate."""
    with suppress(ValueError):
        _MAPPING.name_of(data.decode(errors="replace"))


class _Transport(asyncio.Transport):
    """Takes what is written, and says where the peer is."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.written = 0
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written += len(data)

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


_LOOP = asyncio.new_event_loop()


def _connection(kind: ListenerKind, security: ServerSecurity | None = None) -> Target:
    """A whole connection of a listener, on which nobody answers what is taken."""

    def target(data: bytes) -> None:
        _LOOP.run_until_complete(_talk(kind, security, data))

    return target


async def _talk(kind: ListenerKind, security: ServerSecurity | None, data: bytes) -> None:
    received: list[Received] = []
    server = Server(
        listener="fuzz",
        kind=kind,
        receive=received.append,
        tokens=count(1),
        security=security,
        traffic=Traffic(),
    )
    connection, transport = ServedConnection(server), _Transport()
    connection.connection_made(transport)
    position = 0
    while position < len(data) and not transport.is_closed:
        room = connection.get_buffer(-1)
        part = data[position : position + len(room)]
        room[: len(part)] = part
        position += len(part)
        connection.buffer_updated(len(part))
        for asked in received:
            server.reply(asked.token, None)
        received.clear()
    connection.connection_lost(None)


# --- who somebody is -------------------------------------------------------------------------

_PASSWORD = "secret"
_SALT = b"salt"
_SALTED = SCRAM_SHA_256.salted(_PASSWORD, _SALT, 4096)
_CREDENTIAL = ScramCredential(
    salt=_SALT,
    stored_key=stored_key(Mechanism.SHA_256, _SALTED),
    server_key=server_key(Mechanism.SHA_256, _SALTED),
    iterations=4096,
)
_KEYS = key_set({"keys": [{"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0", "kid": "1"}]})


def _scram_server() -> ScramServer:
    return ScramServer(
        SCRAM_SHA_256, lambda _: _CREDENTIAL, nonce="server", decoy_of=lambda _: _CREDENTIAL
    )


def _steps(begin: Callable[[], ServerExchange]) -> Target:
    """The tokens of one exchange, cut where the first byte says."""

    def target(data: bytes) -> None:
        exchange, first = begin(), 1 + data[0] if data else 1
        for token in (data[1:first], data[first:]):
            if isinstance(exchange.receive(token, 0), Refused | Identified):
                break

    return target


def scram_client(data: bytes) -> None:
    """What a server says that is not who it should be."""
    client = ScramClient(SCRAM_SHA_256, "alice", _PASSWORD, nonce="client")
    client.first()
    first = 1 + data[0] if data else 1
    for token in (data[1:first], data[first:]):
        step = client.receive(token)
        assert not isinstance(step, Finished), "nobody knows the password"
        if isinstance(step, Refused):
            break


_SASL = ServerSecurity(
    protocol=SecurityProtocol.SASL_PLAINTEXT,
    sasl=SaslListener(
        mechanisms={
            "PLAIN": SaslMechanism(begin=lambda: PlainServer({"alice": _PASSWORD})),
            "SCRAM-SHA-256": SaslMechanism(begin=_scram_server, session_ms=1),
        }
    ),
)


TARGETS: dict[str, Target] = {
    "frames": frames,
    "requests-broker": _requests(ListenerKind.BROKER),
    "requests-controller": _requests(ListenerKind.CONTROLLER),
    "requests-zookeeper": _requests(ListenerKind.ZOOKEEPER),
    "api-versions": api_versions,
    "envelope": envelope,
    "principal": principal,
    "connection-broker": _connection(ListenerKind.BROKER),
    "connection-controller": _connection(ListenerKind.CONTROLLER),
    "connection-sasl": _connection(ListenerKind.BROKER, _SASL),
    "plain": _steps(lambda: PlainServer({"alice": _PASSWORD})),
    "scram-server": _steps(_scram_server),
    "scram-client": scram_client,
    "oauthbearer": _steps(lambda: OauthbearerServer(lambda _: _KEYS, TokenRules())),
    "principal-mapping": mapping,
}


def _cut(first: bytes, second: bytes = b"") -> bytes:
    """As the targets of two tokens want them."""
    return bytes([len(first)]) + first + second


# Where coverage does not lead: what a regular expression wants is not seen byte by byte.
SEEDS: dict[str, tuple[bytes, ...]] = {
    "plain": (_cut(b"\0alice\0secret"), _cut(b"alice\0alice\0wrong")),
    "scram-server": (
        _cut(b"n,,n=alice,r=client", b"c=biws,r=clientserver,p=YWJj"),
        _cut(b"y,a=bob,n=a=2Cb,r=x,tokenauth=true", b"c=eSws,r=xserver,x=y,p=YQ=="),
    ),
    "scram-client": (
        _cut(b"r=clientserver,s=c2FsdA==,i=4096", b"v=YWJj"),
        _cut(b"m=x,r=clientserver,s=c2FsdA==,i=1", b"e=other-error"),
    ),
    "oauthbearer": (_cut(b"n,,\x01auth=Bearer e30.e30.YQ\x01\x01", b"\x01"),),
    "principal-mapping": (b"CN=Duke,OU=SME,O=Sun,L=SF,C=US", b"CN=a\\,b+OU=c"),
}
