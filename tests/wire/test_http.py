"""The HTTP server: routes, statuses, ports, ends."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

import pytest
from aiohttp import ClientSession

from wire import http
from wire.http import Answer, HttpServer

HOST = "127.0.0.1"


def run(test: Callable[[ClientSession], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(10), ClientSession() as session:
            await test(session)

    asyncio.run(main())


def test_routes_answer_with_their_status_type_and_body() -> None:
    async def slow(_: Mapping[str, str]) -> Answer:
        await asyncio.sleep(0)
        return Answer(status=503, body=b"not yet")

    async def test(session: ClientSession) -> None:
        server = HttpServer(
            {
                "/livez": lambda _: Answer(content_type="application/json", body=b"{}"),
                "/named/{name}": lambda parts: Answer(body=parts["name"].encode()),
                "/readyz": slow,
                "/asked": lambda query: Answer(body=query.get("topic", "none").encode()),
            },
            {"/told": lambda body: Answer(body=body * 2)},
        )
        port = await server.start(HOST, 0)
        assert port > 0
        async with session.get(f"http://{HOST}:{port}/livez") as response:
            assert (response.status, await response.read()) == (200, b"{}")
            assert response.content_type == "application/json"
        async with session.get(f"http://{HOST}:{port}/readyz") as response:
            assert (response.status, await response.read()) == (503, b"not yet")
        async with session.get(f"http://{HOST}:{port}/named/a.b-c") as response:
            assert await response.read() == b"a.b-c"
        async with session.get(f"http://{HOST}:{port}/asked?topic=a%20b") as response:
            assert await response.read() == b"a b"
        thousand = ",".join(["123456789012345678"] * 1000)
        async with session.get(f"http://{HOST}:{port}/asked?topic={thousand}") as response:
            assert await response.read() == thousand.encode()
        async with session.post(f"http://{HOST}:{port}/told", data=b"so ") as response:
            assert await response.read() == b"so so "
        async with session.get(f"http://{HOST}:{port}/elsewhere") as response:
            assert response.status == 404
        async with session.post(f"http://{HOST}:{port}/livez") as response:
            assert response.status == 405
        await server.stop()
        again = HttpServer({})
        assert await again.start(HOST, port) == port
        await again.stop()

    run(test)


def test_stop_without_start_is_fine() -> None:
    asyncio.run(HttpServer({}).stop())


def test_page_of_another_site_may_link_and_nothing_else() -> None:
    async def test(session: ClientSession) -> None:
        server = HttpServer(
            {"/": lambda _: Answer(body=b"page")}, {"/": lambda body: Answer(body=body)}
        )
        url = f"http://{HOST}:{await server.start(HOST, 0)}/"
        for site, mode, method, status in (
            ("cross-site", "navigate", "GET", 200),
            ("cross-site", "navigate", "POST", 403),  # a form
            ("cross-site", "no-cors", "GET", 403),  # a picture
            ("cross-site", "cors", "POST", 403),
            ("same-origin", "cors", "GET", 200),
            ("none", "navigate", "GET", 200),
        ):
            headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
            async with session.request(method, url, headers=headers) as response:
                assert response.status == status, (site, mode, method)
        await server.stop()

    run(test)


def test_stream_ends_for_a_client_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_STALLED_SECONDS", 0.05)
    ended = asyncio.Event()

    async def flood() -> AsyncGenerator[tuple[str, bytes], None]:
        try:
            while True:
                yield "change", b"x" * (1 << 20)
        finally:
            ended.set()

    async def test(_: ClientSession) -> None:
        server = HttpServer({}, streams={"/": flood})
        reader, writer = await asyncio.open_connection(HOST, await server.start(HOST, 0))
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        await ended.wait()
        writer.close()
        await server.stop()

    run(test)
