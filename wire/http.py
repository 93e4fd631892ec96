"""The HTTP server of a node: a table of routes behind aiohttp, which knows nothing about nodes.

A route is called for each GET of its path, with the values of the query and of the path's `{name}`
parts, or for each POST with its body; it may be a coroutine. The caller decides what each path
serves.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import isawaitable
from typing import cast

from aiohttp import web

__all__ = ["Answer", "HttpServer", "PostRoute", "Route"]

_STOP_SECONDS = 1.0  # how long a stop waits for requests that are being answered


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


class HttpServer:
    """Serves GET (and HEAD) and POST of the paths in its tables, at one address."""

    def __init__(
        self, routes: Mapping[str, Route], posts: Mapping[str, PostRoute] | None = None
    ) -> None:
        self._routes = [web.get(path, _getting(route)) for path, route in routes.items()]
        self._routes += [web.post(path, _posted(route)) for path, route in (posts or {}).items()]
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port: the one that was free if `port` is 0."""
        assert self._runner is None, "started twice"
        application = web.Application()
        application.add_routes(self._routes)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=_STOP_SECONDS)
        await runner.setup()
        self._runner = runner  # from here on, `stop` has something to undo
        await web.TCPSite(runner, host or None, port, reuse_address=True).start()
        return cast(int, runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening, and close every connection."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()


def _getting(route: Route) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        return await _response(route({**request.query, **request.match_info}))

    return answer


def _posted(route: PostRoute) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        return await _response(route(await request.read()))

    return answer


async def _response(answer: Answer | Awaitable[Answer]) -> web.Response:
    if isawaitable(answer):
        answer = await answer
    return web.Response(
        status=answer.status,
        body=answer.body,
        headers={"Content-Type": answer.content_type, "Cache-Control": "no-store"},
    )
