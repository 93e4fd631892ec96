"""Answers come later, each by the whole delay, and in their order."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from jepsen_like.real.delay_line import DelayLine
from jepsen_like.real.delay_relay import serve, servers
from jepsen_like.real.free_ports import free_ports

HOST = "127.0.0.1"
DELAY_MS = 50


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(4096):
            writer.write(piece)
    finally:  # also if the test is over first
        writer.close()


@asynccontextmanager
async def before_an_echo(
    directory: Path,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server that says everything again, through a line."""
    server = await asyncio.start_server(echo, HOST, 0)
    port = server.sockets[0].getsockname()[1]
    line = DelayLine.create(directory, to=[f"{HOST}:{port}"], delay_ms=DELAY_MS, ports=free_ports())
    with servers(line):
        async with server:
            reader, writer = await asyncio.open_connection(HOST, line.ports[0])
            yield reader, writer
            writer.close()
            await writer.wait_closed()


def frame(number: int) -> bytes:
    return (4).to_bytes(4) + number.to_bytes(4)


def test_what_is_asked_in_a_row_costs_the_delay_each(tmp_path: Path) -> None:
    async def test() -> None:
        async with before_an_echo(tmp_path) as (reader, writer):
            began = asyncio.get_running_loop().time()
            for number in range(4):
                writer.write(frame(number))
                assert await reader.readexactly(8) == frame(number)
            assert asyncio.get_running_loop().time() - began >= 4 * DELAY_MS / 1000

    asyncio.run(test())


def test_what_is_pipelined_costs_it_once_and_stays_in_order(tmp_path: Path) -> None:
    async def test() -> None:
        async with before_an_echo(tmp_path) as (reader, writer):
            began = asyncio.get_running_loop().time()
            for number in range(100):
                writer.write(frame(number))
                await writer.drain()
            told = [await reader.readexactly(8) for _ in range(100)]
            took_ms = (asyncio.get_running_loop().time() - began) * 1000
            assert told == [frame(number) for number in range(100)]
            assert DELAY_MS <= took_ms < 100 * DELAY_MS / 2

    asyncio.run(test())


def test_end_of_a_connection_is_passed_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with before_an_echo(tmp_path) as (reader, writer):
            writer.write_eof()
            assert await reader.read() == b""

    asyncio.run(test())


def test_line_ends_by_itself_when_its_directory_is_gone(tmp_path: Path) -> None:
    directory = tmp_path / "line"
    line = DelayLine.create(directory, to=[f"{HOST}:1"], delay_ms=DELAY_MS, ports=free_ports())
    shutil.rmtree(directory)
    assert DelayLine.open(directory) is None
    serve(line)
