"""Answers come later, each by the whole delay, and in their order."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from jepsen_like.real.delay_line import DelayLine
from jepsen_like.real.delay_relay import serve
from jepsen_like.real.free_ports import free_ports

HOST = "127.0.0.1"
DELAY_MS = 50


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line)
    writer.close()


@asynccontextmanager
async def before_an_echo(
    directory: Path,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server that says everything again, through a line."""
    server = await asyncio.start_server(echo, HOST, 0)
    port = server.sockets[0].getsockname()[1]
    line = DelayLine.create(directory, to=[f"{HOST}:{port}"], delay_ms=DELAY_MS, ports=free_ports())
    serving = asyncio.create_task(serve(line))
    async with server:
        reader, writer = await connected(int(line.connect.rpartition(":")[2]))
        this = asyncio.current_task()
        yield reader, writer
        writer.close()
        await writer.wait_closed()
        serving.cancel()
        await asyncio.wait({each for each in asyncio.all_tasks() if each is not this})


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    while True:
        try:
            return await asyncio.open_connection(HOST, port)
        except ConnectionRefusedError:
            await asyncio.sleep(0)


def test_what_is_asked_in_a_row_costs_the_delay_each(tmp_path: Path) -> None:
    async def test() -> None:
        async with before_an_echo(tmp_path) as (reader, writer):
            began = asyncio.get_running_loop().time()
            for number in range(4):
                writer.write(f"{number}\n".encode())
                assert await reader.readline() == f"{number}\n".encode()
            assert asyncio.get_running_loop().time() - began >= 4 * DELAY_MS / 1000

    asyncio.run(test())


def test_what_is_pipelined_costs_it_once_and_stays_in_order(tmp_path: Path) -> None:
    async def test() -> None:
        async with before_an_echo(tmp_path) as (reader, writer):
            began = asyncio.get_running_loop().time()
            for number in range(100):
                writer.write(f"{number}\n".encode())
                await writer.drain()
            told = [await reader.readline() for _ in range(100)]
            took_ms = (asyncio.get_running_loop().time() - began) * 1000
            assert told == [f"{number}\n".encode() for number in range(100)]
            assert DELAY_MS <= took_ms < 100 * DELAY_MS / 2

    asyncio.run(test())


def test_end_of_a_connection_is_passed_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with before_an_echo(tmp_path) as (reader, writer):
            writer.write_eof()
            assert await reader.read() == b""

    asyncio.run(test())


def test_line_ends_by_itself_when_its_directory_is_gone(tmp_path: Path) -> None:
    async def test() -> None:
        directory = tmp_path / "line"
        line = DelayLine.create(directory, to=[f"{HOST}:1"], delay_ms=DELAY_MS, ports=free_ports())
        shutil.rmtree(directory)
        assert DelayLine.open(directory) is None
        async with asyncio.timeout(10):
            await serve(line)

    asyncio.run(test())
