"""Nodes that speak TLS, those who dial them, and what each takes the other for."""

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Self

from tests.wire.security.certificates import NOW, Certified, authority, certified
from wire.api_table import ListenerKind, api_versions_response
from wire.canonical import preload
from wire.messages.features import ApiVersionsRequest
from wire.messages.registration import UnregisterBrokerRequest, UnregisterBrokerResponse
from wire.security.principal_mapping import PrincipalMapping
from wire.security.protocols import ClientSecurity, ServerSecurity, ServerTls
from wire.security.security_protocol import SecurityProtocol
from wire.security.stores import StoreSettings
from wire.security.tls import TlsSettings, client_context, principal_of, server_context
from wire.serving import Received, ServerLimits
from wire.tcp_client import ConnectionPool
from wire.tcp_server import Server

HOST = "127.0.0.1"
NODE = certified()


def key_store(of: Certified) -> StoreSettings:
    return StoreSettings(
        name="ssl.keystore", type="PEM", certificates=of.certificate_pem, key=of.key_pem()
    )


def trust_store(*of: Certified) -> StoreSettings:
    text = "".join(each.certificate_pem for each in of)
    return StoreSettings(name="ssl.truststore", type="PEM", certificates=text)


def listening(
    node: Certified = NODE,
    *,
    client_auth: str = "none",
    rules: str = "DEFAULT",
    seconds: float = 10.0,
    trusted: Certified | None = None,
    **others: Any,
) -> ServerSecurity:
    settings = TlsSettings(
        key_store=key_store(node),
        trust_store=trust_store(trusted or authority()),
        client_auth=client_auth,
        **others,
    )
    mapping = PrincipalMapping.parse(rules)
    tls = ServerTls(
        context=server_context(settings, NOW),
        principal_of=partial(principal_of, mapping=mapping),
        handshake_seconds=seconds,
    )
    return ServerSecurity(protocol=SecurityProtocol.SSL, tls=tls)


def dialling(
    who: Certified | None = None, *, trusts: Certified | None = None, **others: Any
) -> ClientSecurity:
    settings = TlsSettings(trust_store=trust_store(trusts or authority()), **others)
    if who is not None:
        settings = TlsSettings(key_store=key_store(who), trust_store=settings.trust_store, **others)
    return ClientSecurity(protocol=SecurityProtocol.SSL, tls=client_context(settings, NOW))


class Node:
    """A server that says who asked: `error_message` of its answer is the principal."""

    def __init__(self, security: ServerSecurity, limits: ServerLimits | None = None) -> None:
        preload()
        self.port = 0
        self._hangs_up = False
        self.server = Server(
            listener="SSL",
            kind=ListenerKind.CONTROLLER,
            receive=self._receive,
            tokens=count(),
            security=security,
            limits=limits,
        )

    def hang_up(self) -> None:
        """With whoever asks next."""
        self._hangs_up = True

    def _receive(self, received: Received) -> None:
        if self._hangs_up:
            self._hangs_up = False
            self.server.hang_up(received.token)
            return
        body: object = UnregisterBrokerResponse(error_message=str(received.principal))
        if isinstance(received.request.body, ApiVersionsRequest):
            body = api_versions_response(ListenerKind.CONTROLLER)
        self.server.reply(received.token, body)

    async def __aenter__(self) -> Self:
        self.port = await self.server.start(HOST, 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()


async def ask(pool: ConnectionPool, port: int, host: str = HOST) -> object:
    """The principal that the node took us for, or a SendFailure."""
    outcome: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    body = UnregisterBrokerRequest(broker_id=1)
    pool.send(host, port, "test", body, timeout_ms=5000, done=outcome.set_result)
    answer = await outcome
    return answer.error_message if isinstance(answer, UnregisterBrokerResponse) else answer


async def connected(node: Node, security: ClientSecurity, host: str = HOST) -> object:
    async with ConnectionPool(client_id="c", security_of=lambda _: security) as pool:
        return await ask(pool, node.port, host)


async def until(holds: Callable[[], object]) -> None:
    while not holds():  # noqa: ASYNC110  # nobody announces it
        await asyncio.sleep(0.001)
