"""The HTTP side of a node: a table of routes over HTTP/1.1, and nothing about nodes.

A route is called for each GET of its path, with the values of the query and of the path's `{name}`
parts, or for each POST with its body; it may be a coroutine. What is served at which path is the
caller's.

It has what probes, scrapers and tests use: HEAD, connections that stay open, bodies with a length.
A request in chunks is refused. Source: RFC 9110, RFC 9112.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from inspect import isawaitable
from typing import cast
from urllib.parse import parse_qsl, unquote, urlsplit

__all__ = ["Answer", "HttpServer", "PostRoute", "Route"]

_log = logging.getLogger(__name__)
_STOP_SECONDS = 1.0  # how long a stop waits for requests that are being answered
_IDLE_SECONDS = 75.0  # until a request is here as a whole
_HEAD_BYTES_MAX = 16 << 10
_BODY_BYTES_MAX = 1 << 20


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    method: str
    path: str
    query: str
    stays: bool  # does the connection stay open?
    body: bytes


class _Refused(Exception):
    """What came is no request that is served here, and nothing after it can be understood."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class HttpServer:
    """Serves GET (and HEAD) and POST of the paths in its tables, at one address."""

    def __init__(
        self, routes: Mapping[str, Route], posts: Mapping[str, PostRoute] | None = None
    ) -> None:
        self._routes = routes
        self._posts = posts or {}
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._idle: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port: the one that was free if `port` is 0."""
        assert self._server is None, "started twice"
        self._server = await asyncio.start_server(
            self._accept, host or None, port, limit=_HEAD_BYTES_MAX
        )
        return cast(int, self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening, and close every connection."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        for idle in self._idle:
            idle.cancel()
        if self._connections:
            _, late = await asyncio.wait(self._connections, timeout=_STOP_SECONDS)
            for each in late:
                each.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._serve_one(reader, writer):
                pass
        except (OSError, EOFError):  # it has gone, or says nothing any more (TimeoutError)
            pass
        finally:
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request. Does the connection stay open?"""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._idle.add(task)
        try:
            async with asyncio.timeout(_IDLE_SECONDS):
                request = await _read(reader, writer)
        except _Refused as refused:
            writer.write(_encode(_plain(refused.status), stays=False, has_body=True))
            await writer.drain()
            return False
        finally:
            self._idle.discard(task)
        answer = await self._answer(request)
        stays = request.stays and self._server is not None
        writer.write(_encode(answer, stays=stays, has_body=request.method != "HEAD"))
        await writer.drain()
        return stays

    async def _answer(self, request: _Request) -> Answer:
        path = request.path
        try:
            if request.method == "POST" and path in self._posts:
                return await _awaited(self._posts[path](request.body))
            for pattern, route in self._routes.items():
                parts = _match(pattern, path)
                if parts is not None:
                    if request.method not in ("GET", "HEAD"):
                        return _plain(HTTPStatus.METHOD_NOT_ALLOWED)
                    query = reversed(parse_qsl(request.query, keep_blank_values=True))
                    return await _awaited(route({**dict(query), **parts}))  # the first counts
        except Exception:  # noqa: BLE001 - a page that fails stops no node
            _log.exception("%s %s fails", request.method, path)
            return _plain(HTTPStatus.INTERNAL_SERVER_ERROR)
        is_post = path in self._posts
        return _plain(HTTPStatus.METHOD_NOT_ALLOWED if is_post else HTTPStatus.NOT_FOUND)


async def _awaited(answer: Answer | Awaitable[Answer]) -> Answer:
    return await answer if isawaitable(answer) else answer


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Request:
    """The next request. Raises EOFError where the connection ends, and _Refused."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise _Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from error
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _Refused(HTTPStatus.BAD_REQUEST)
    try:
        url = urlsplit(words[1])
    except ValueError as error:
        raise _Refused(HTTPStatus.BAD_REQUEST) from error
    fields = {}
    for line in lines:
        name, _, value = line.partition(":")
        fields[name.lower()] = value.strip()
    length = _body_length(fields)
    if length and fields.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return _Request(
        method=words[0],
        path=url.path,
        query=url.query,
        stays=words[2] != "HTTP/1.0" and fields.get("connection", "").lower() != "close",
        body=await reader.readexactly(length),
    )


def _body_length(fields: Mapping[str, str]) -> int:
    """In bytes. Raises _Refused."""
    if "transfer-encoding" in fields:
        raise _Refused(HTTPStatus.NOT_IMPLEMENTED)
    text = fields.get("content-length", "0")
    if not (text.isascii() and text.isdecimal()):
        raise _Refused(HTTPStatus.BAD_REQUEST)
    if len(text) > len(str(_BODY_BYTES_MAX)) or int(text) > _BODY_BYTES_MAX:
        raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return int(text)


def _match(pattern: str, path: str) -> dict[str, str] | None:
    """The path's named parts, if it has the form of the pattern."""
    wanted, given = pattern.split("/"), path.split("/")
    if len(wanted) != len(given):
        return None
    parts = {}
    for expected, part in zip(wanted, given, strict=True):
        if expected.startswith("{") and part:
            parts[expected[1:-1]] = unquote(part)
        elif expected != part:
            return None
    return parts


def _plain(status: HTTPStatus) -> Answer:
    return Answer(status=status, body=f"{status.value}: {status.phrase}\n".encode())


def _encode(answer: Answer, *, stays: bool, has_body: bool) -> bytes:
    """An answer without content (204) has no length either."""
    status = HTTPStatus(answer.status)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", "Cache-Control: no-store"]
    if status is not HTTPStatus.NO_CONTENT:
        lines += [f"Content-Type: {answer.content_type}", f"Content-Length: {len(answer.body)}"]
    if not stays:
        lines.append("Connection: close")
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    return head + answer.body if has_body else head
