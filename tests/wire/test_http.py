"""The HTTP server: routes, statuses, ports, ends."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import ClientSession

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
