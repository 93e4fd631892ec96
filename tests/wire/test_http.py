"""The HTTP server: routes, statuses, ports, ends."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest
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


def broken(_: Mapping[str, str]) -> Answer:
    raise ValueError("a page that fails")


def exchange(*sent: bytes) -> bytes:
    """All that the server writes to who says this, and no more."""

    async def main() -> bytes:
        server = HttpServer(
            {
                "/livez": lambda _: Answer(body=b"ok"),
                "/none": lambda _: Answer(status=204),
                "/asked": lambda query: Answer(body=query.get("a", "none").encode()),
                "/broken": broken,
            },
            {"/told": lambda body: Answer(body=body * 2)},
        )
        port = await server.start(HOST, 0)
        reader, writer = await asyncio.open_connection(HOST, port)
        for part in sent:
            writer.write(part)
            await writer.drain()
        writer.write_eof()
        async with asyncio.timeout(10):
            received = await reader.read()
        writer.close()
        await server.stop()
        return received

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /livez HTTP/1.1\r\n\r\n", b"200 OK"),
        (b"GET http://host/livez HTTP/1.1\r\n\r\n", b"200 OK"),
        (b"PUT /livez HTTP/1.1\r\n\r\n", b"405 Method Not Allowed"),
        (b"GET /told HTTP/1.1\r\n\r\n", b"405 Method Not Allowed"),
        (b"GET / HTTP/1.1\r\n\r\n", b"404 Not Found"),
        (b"GET /broken HTTP/1.1\r\n\r\n", b"500 Internal Server Error"),
        (b"nonsense\r\n\r\n", b"400 Bad Request"),
        (b"GET //[ HTTP/1.1\r\n\r\n", b"400 Bad Request"),
        (b"GET /livez HTTP/2.0\r\n\r\n", b"400 Bad Request"),
        (b"POST /told HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400 Bad Request"),
        (
            b"POST /told HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
            b"413 Request Entity Too Large",
        ),
        (b"POST /told HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"501 Not Implemented"),
        (
            b"GET /livez HTTP/1.1\r\nX: " + b"x" * (16 << 10) + b"\r\n\r\n",
            b"431 Request Header Fields Too Large",
        ),
    ],
)
def test_status(sent: bytes, status: bytes, caplog: pytest.LogCaptureFixture) -> None:
    assert exchange(sent).partition(b"\r\n")[0] == b"HTTP/1.1 " + status
    assert len(caplog.records) == (status[:3] == b"500"), "only a bug of ours is worth a line"


def test_connection_stays_open_and_answers_in_order() -> None:
    received = exchange(
        b"GET /asked?a=1&a=2 HTTP/1.1\r\n\r\nPOST /told HTTP/1.1\r\nCONTENT-length: 3\r\n\r\nso",
        b" GET /none HTTP/1.1\r\n\r\nGET /livez HTTP/1.0\r\n\r\nGET /livez HTTP/1.1\r\n\r\n",
    )
    answers = received.split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200", b"200", b"204", b"200"]
    assert [answer.partition(b"\r\n\r\n")[2] for answer in answers] == [b"1", b"so so ", b"", b"ok"]
    assert b"Content-Length" not in answers[2]
    assert [b"Connection: close" in answer for answer in answers] == [False, False, False, True]


def test_head_has_the_length_and_no_body() -> None:
    received = exchange(b"HEAD /livez HTTP/1.1\r\n\r\n")
    assert received.endswith(b"Content-Length: 2\r\n\r\n")


def test_who_asks_whether_to_go_on_is_told_to() -> None:
    head = b"POST /told HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    received = exchange(head, b"ab")
    assert received.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert received.endswith(b"abab")


def test_stop_ends_idle_connections_at_once_and_waits_for_answers() -> None:
    async def main() -> None:
        asked, may_answer = asyncio.Event(), asyncio.Event()

        async def slow(_: Mapping[str, str]) -> Answer:
            asked.set()
            await may_answer.wait()
            return Answer(body=b"late")

        server = HttpServer({"/slow": slow})
        port = await server.start(HOST, 0)
        idle, idle_writer = await asyncio.open_connection(HOST, port)
        busy, busy_writer = await asyncio.open_connection(HOST, port)
        busy_writer.write(b"GET /slow HTTP/1.1\r\n\r\n")
        await asked.wait()
        stopping = asyncio.ensure_future(server.stop())
        assert await idle.read() == b""
        may_answer.set()
        assert (await busy.read()).endswith(b"late")
        await stopping
        idle_writer.close()
        busy_writer.close()

    asyncio.run(asyncio.wait_for(main(), 10))
