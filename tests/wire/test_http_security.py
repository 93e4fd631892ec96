"""The HTTP server before it knows who asks: credentials, TLS, and who takes places from others."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import ClientSession

from quorumlab.security.certificates import Authority
from wire import http
from wire.http import Answer, HttpSecurity, HttpServer

HOST = "127.0.0.1"
TOKEN = HttpSecurity(scheme="Bearer", secrets=(b"t0ken",), open_paths=("/livez",))
KNOWN = {"Authorization": "Bearer t0ken"}


def run(security: HttpSecurity, test: Callable[[int], Awaitable[None]]) -> list[bytes]:
    """What was changed meanwhile."""
    changes: list[bytes] = []

    def change(body: bytes) -> Answer:
        changes.append(body)
        return Answer()

    async def main() -> None:
        server = HttpServer(
            {"/livez": lambda _: Answer(), "/secret": lambda _: Answer(body=b"known")},
            {"/change": change, "/livez": change},
            security=security,
        )
        async with asyncio.timeout(10):
            await test(await server.start(HOST, 0))
            await server.stop()

    asyncio.run(main())
    return changes


def test_only_names_of_this_machine_are_answered_where_they_are_listed() -> None:
    async def test(port: int) -> None:
        async with ClientSession() as session:
            for name, status in (
                (f"{HOST}:{port}", 200),
                (f"localhost:{port}", 200),
                (HOST, 200),  # as browsers write it for port 80
                (f"elsewhere.example:{port}", 403),
                ("", 403),
            ):
                headers = {"Host": name, "Sec-Fetch-Site": "same-origin"}
                async with session.get(f"http://{HOST}:{port}/livez", headers=headers) as found:
                    assert found.status == status, name

    run(HttpSecurity(hosts=(HOST, "localhost")), test)


def test_without_credentials_there_is_health_and_no_change() -> None:
    async def test(port: int) -> None:
        async with ClientSession() as session:
            for path, headers, status in (
                ("livez", {}, 200),
                ("secret", {}, 401),
                ("secret", {"Authorization": "Bearer t0ke"}, 401),
                ("secret", KNOWN, 200),
                ("nowhere", {}, 401),
                ("livez/../secret", {}, 401),
                ("//secret", {}, 401),
            ):
                async with session.get(f"http://{HOST}:{port}/{path}", headers=headers) as found:
                    assert found.status == status, path
                    assert ("WWW-Authenticate" in found.headers) == (status == 401)
            url = f"http://{HOST}:{port}/change"
            async with session.post(url, data=b"theirs") as found:
                assert found.status == 401
            async with session.post(url, data=b"ours", headers=KNOWN) as found:
                assert found.status == 200

    assert run(TOKEN, test) == [b"ours"]


def test_header_that_is_no_text_is_one_that_nobody_knows() -> None:
    security = HttpSecurity(secrets=(b"YTpi",))
    assert security.is_known("Basic YTpi")
    assert not security.is_known("Basic \udcff")


def test_pages_are_served_over_tls_alone(tmp_path: Path) -> None:
    authority, own = Authority.new("test"), tmp_path / "node.pem"
    own.write_bytes(authority.signed_pem("node-1"))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(own)
    trusting = ssl.create_default_context(cadata=authority.pem.decode())

    async def test(port: int) -> None:
        url = f"https://{HOST}:{port}/secret"
        async with ClientSession() as session, session.get(url, ssl=trusting) as found:
            assert await found.read() == b"known"
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(b"GET /secret HTTP/1.0\r\n\r\n")
        assert b"known" not in await reader.read()
        writer.close()

    run(HttpSecurity(tls=tls), test)


def test_who_says_nothing_for_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_FIRST_REQUEST_SECONDS", 0.05)

    async def test(port: int) -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(b"GET /livez HT")
        assert await reader.read() == b""
        writer.close()
        async with ClientSession() as session:
            url = f"http://{HOST}:{port}/livez"
            async with session.get(url) as found:
                assert found.status == 200
            await asyncio.sleep(0.1)
            async with session.get(url) as found:  # on the same connection
                assert found.status == 200

    run(HttpSecurity(), test)


def test_one_connection_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_CONNECTIONS_MAX", 1)

    async def answer(port: int) -> bytes:
        reader, writer = await asyncio.open_connection(HOST, port)
        try:
            writer.write(b"GET /secret HTTP/1.0\r\n\r\n")
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    async def test(port: int) -> None:
        _, first = await asyncio.open_connection(HOST, port)
        assert await answer(port) == b""
        first.close()
        while not (found := await answer(port)):
            pass  # the server has not heard of the end yet
        assert b"known" in found

    run(HttpSecurity(), test)
