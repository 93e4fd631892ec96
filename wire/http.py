"""The HTTP server of a node: a table of routes behind aiohttp, which knows nothing about nodes.

A route is called for each GET of its path, with the values of the query and of the path's `{name}`
parts, or for each POST with its body; it may be a coroutine. A stream goes on for as long as its
client stays (server-sent events of the HTML standard). The caller decides what each path serves,
and who has to show that he may see it (RFC 7617, RFC 6750).
"""

import asyncio
import hmac
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import cast

from aiohttp import web

__all__ = ["Answer", "HttpSecurity", "HttpServer", "PostRoute", "Route", "StreamRoute"]

_STALLED_SECONDS = 30.0  # for a client of a stream that does not read
_STOP_SECONDS = 1.0  # how long a stop waits for requests that are being answered
_LINE_BYTES_MAX = 1 << 15  # of a path with its query: a list of a thousand offsets fits
_CONNECTIONS_MAX = 256
_FIRST_REQUEST_SECONDS = 10.0  # with the handshake: who says nothing takes a place from others


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int = 200
    content_type: str = "text/plain"
    body: bytes = b""

    @classmethod
    def json(cls, value: object, status: int = 200) -> "Answer":
        body = json.dumps(value).encode() + b"\n"
        return cls(status=status, content_type="application/json", body=body)


Route = Callable[[Mapping[str, str]], Answer | Awaitable[Answer]]
PostRoute = Callable[[bytes], Answer | Awaitable[Answer]]
StreamRoute = Callable[
    [], AsyncGenerator[tuple[str, bytes], None]
]  # events: names, data, no line ends


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSecurity:
    """The credentials that a client has to show. Without secrets everybody is served."""

    tls: ssl.SSLContext | None = None
    scheme: str = "Basic"  # or Bearer
    secrets: Collection[bytes] = field(default=(), repr=False)  # what may stand behind the scheme
    open_paths: Collection[str] = ()  # for everybody
    hosts: Collection[str] = ()  # names that it may be asked by; none: any

    def is_known(self, authorization: str) -> bool:
        """Looks at every secret, however soon one fits."""
        scheme, _, shown = authorization.partition(" ")
        given = shown.strip().encode(errors="surrogateescape")
        found = [hmac.compare_digest(given, secret) for secret in self.secrets]
        return scheme.lower() == self.scheme.lower() and any(found)

    @property
    def challenge(self) -> str:
        return f'{self.scheme} realm="quorumlab"'


class HttpServer:
    """Serves GET (and HEAD) and POST of the paths in its tables, at one address."""

    def __init__(
        self,
        routes: Mapping[str, Route],
        posts: Mapping[str, PostRoute] | None = None,
        streams: Mapping[str, StreamRoute] | None = None,
        *,
        security: HttpSecurity | None = None,
    ) -> None:
        self._security = security or HttpSecurity()
        self._silent: dict[asyncio.BaseProtocol, asyncio.TimerHandle] = {}  # without a request
        self._listening: asyncio.Server | None = None
        self._routes = [web.get(path, _getting(route)) for path, route in routes.items()]
        self._routes += [web.post(path, _posted(route)) for path, route in (posts or {}).items()]
        self._routes += [web.get(path, _streaming(s)) for path, s in (streams or {}).items()]
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port: the one that was free if `port` is 0."""
        assert self._runner is None, "started twice"
        application = web.Application(middlewares=[self._admit, _refuse_other_sites])
        application.add_routes(self._routes)
        runner = web.AppRunner(
            application,
            access_log=None,
            shutdown_timeout=_STOP_SECONDS,
            max_line_size=_LINE_BYTES_MAX,
        )
        await runner.setup()
        self._runner = runner  # from here on, `stop` has something to undo
        tls = self._security.tls
        self._listening = await asyncio.get_running_loop().create_server(
            self._connection,
            host or None,
            port,
            reuse_address=True,
            ssl=tls,
            ssl_handshake_timeout=None if tls is None else _FIRST_REQUEST_SECONDS,
        )
        return cast(int, self._listening.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening, and close every connection."""
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.close()
        for timer in self._silent.values():
            timer.cancel()
        self._silent.clear()
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    def _connection(self) -> asyncio.BaseProtocol:
        assert self._runner is not None
        server = self._runner.server
        assert server is not None
        if len(server.connections) >= _CONNECTIONS_MAX:
            return _Refused()
        connection = server()
        loop = asyncio.get_running_loop()
        timer = loop.call_later(_FIRST_REQUEST_SECONDS, self._close_silent, connection)
        self._silent[connection] = timer
        return connection

    def _close_silent(self, connection: web.RequestHandler) -> None:
        """A byte now and then is no request."""
        del self._silent[connection]
        connection.force_close()

    @web.middleware
    async def _admit(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if (timer := self._silent.pop(request.protocol, None)) is not None:
            timer.cancel()
        security = self._security
        if security.hosts and request.host.partition(":")[0] not in security.hosts:
            raise web.HTTPForbidden(text="asked by a name that is not this machine's\n")
        is_open = not security.secrets or request.path in security.open_paths
        if is_open or security.is_known(request.headers.get("Authorization", "")):
            return await handler(request)
        challenge = {"WWW-Authenticate": security.challenge}
        raise web.HTTPUnauthorized(text="say who you are\n", headers=challenge)


class _Refused(asyncio.Protocol):
    """One connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()


@web.middleware
async def _refuse_other_sites(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Pages of other sites may link here, and ask for nothing (Fetch Metadata, of W3C)."""
    is_link = request.headers.get("Sec-Fetch-Mode") == "navigate" and request.method == "GET"
    if request.headers.get("Sec-Fetch-Site") == "cross-site" and not is_link:
        raise web.HTTPForbidden(text="asked by a page of another site\n")
    return await handler(request)


def _getting(route: Route) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        return await _response(route({**request.query, **request.match_info}))

    return answer


def _posted(route: PostRoute) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        return await _response(route(await request.read()))

    return answer


def _streaming(route: StreamRoute) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        await response.prepare(request)
        async with aclosing(route()) as events:
            with suppress(ConnectionError, TimeoutError):  # the client has left, or does not read
                async for name, data in events:
                    event = b"event: %s\ndata: %s\n\n" % (name.encode(), data)
                    await asyncio.wait_for(response.write(event), _STALLED_SECONDS)
        return response

    return answer


async def _response(answer: Answer | Awaitable[Answer]) -> web.Response:
    if isawaitable(answer):
        answer = await answer
    return web.Response(
        status=answer.status,
        body=answer.body,
        headers={"Content-Type": answer.content_type, "Cache-Control": "no-store"},
    )
