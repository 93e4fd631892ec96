"""Clients over TLS that left while nobody was reading from them: their connections end, too."""

import asyncio
from dataclasses import replace
from itertools import count

from tests.wire.security.tls_nodes import HOST, dialling, listening, until
from wire.api_table import ListenerKind, api_of
from wire.apis import encode_request
from wire.canonical import preload
from wire.framing import with_length
from wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from wire.security.authentication import SaslListener, SaslMechanism
from wire.security.plain import PLAIN, PlainServer
from wire.security.security_protocol import SecurityProtocol
from wire.tcp_server import Server

DELAY_SECONDS = 0.05


def login() -> bytes:
    requests = (SaslHandshakeRequest(mechanism=PLAIN), SaslAuthenticateRequest(auth_bytes=b"?"))
    frames = (
        with_length(encode_request(each, 1, number, None)) for number, each in enumerate(requests)
    )
    assert {api_of(type(each)).key for each in requests} == {17, 36}
    return b"".join(b"".join(each) for each in frames)


def test_a_client_that_left_before_its_refusal_is_let_go() -> None:
    sasl = SaslListener(
        mechanisms={PLAIN: SaslMechanism(begin=lambda: PlainServer({}), session_ms=0)},
        timeout_seconds=10,
        failure_delay_seconds=DELAY_SECONDS,
        received_bytes_max=1 << 19,
    )
    security = replace(listening(), protocol=SecurityProtocol.SASL_SSL, sasl=sasl)

    async def test() -> None:
        preload()
        server = Server(
            listener="SASL_SSL",
            kind=ListenerKind.CONTROLLER,
            receive=lambda _: None,
            tokens=count(),
            security=security,
        )
        port = await server.start(HOST, 0)
        reader, writer = await asyncio.open_connection(
            HOST, port, ssl=dialling().tls, server_hostname=HOST
        )
        writer.write(login())
        assert await reader.readexactly(4), "the handshake's answer"
        await until(lambda: server.connection_count)
        writer.transport.abort()
        await until(lambda: not server.connection_count)
        await server.stop()

    asyncio.run(asyncio.wait_for(test(), 5))
