"""The process that reads for a node's page: there while somebody looks, and never longer."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from jepsen_like import python_children
from quorumlab.in_process import InProcessCluster
from quorumlab.web import serving

SECONDS = 30.0
SILENT = "import sys; sys.stdin.read()"
JUNK = "print('no frame', flush=True); import sys; sys.stdin.read()"


class Look:
    """A page that is open."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def event(self) -> str:
        """The name of the next one; empty: there is none any more."""
        while line := await self._line():
            if line.startswith(b"event: "):
                await self._line()
                return line.decode().removeprefix("event: ").strip()
        return ""

    async def _line(self) -> bytes:
        try:
            return await self._answer.content.readline()
        except aiohttp.ClientError:
            return b""  # the node is gone


@asynccontextmanager
async def one_node(path: Path) -> AsyncIterator[tuple[InProcessCluster, str]]:
    """With the URL of its page."""
    async with InProcessCluster(path, controllers=1, brokers=1, combined=True) as cluster:
        (node,) = cluster.layout.nodes
        yield cluster, f"http://{node.host}:{node.http_port}"


@asynccontextmanager
async def looking(url: str) -> AsyncIterator[Look]:
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    connector = aiohttp.TCPConnector(force_close=True)
    async with (
        aiohttp.ClientSession(timeout=timeout, connector=connector, read_bufsize=1 << 22) as http,
        http.get(f"{url}/v1/page/events") as answer,
    ):
        yield Look(answer)


def readers() -> list[int]:
    """Children of this process that began as a reader of a page."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = (each / "cmdline").read_bytes().split(b"\0")
            status = (each / "status").read_text()
        except OSError:
            continue  # it has just ended
        is_reader = {b"quorumlab.web.reader", SILENT.encode(), JUNK.encode()} & {*words}
        if is_reader and f"PPid:\t{os.getpid()}\n" in status:
            found.append(int(each.name))
    return found


async def until_none_reads() -> None:
    async with asyncio.timeout(SECONDS):
        while readers():  # noqa: ASYNC110  # a process ends without a word
            await asyncio.sleep(0.02)


def test_reader_stays_for_the_next_one_and_ends_after_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_LINGER_SECONDS", 0.3)

    async def test() -> None:
        async with one_node(tmp_path) as (_, url):
            async with looking(url) as first:
                assert await first.event() == "whole"
                pids = readers()
            async with looking(url) as second:
                assert [await second.event() for _ in range(3)] == ["whole", "change", "change"]
                assert readers() == pids  # though more time has passed than one may linger
            await until_none_reads()
            async with looking(url) as third:
                assert await third.event() == "whole"
                assert readers() != pids

    asyncio.run(test())


def test_reader_ends_with_its_node(tmp_path: Path) -> None:
    async def test() -> None:
        async with one_node(tmp_path) as (cluster, url), looking(url) as page:
            assert await page.event() == "whole"
            await cluster.stop(1)
            assert readers() == []
            while await page.event():
                pass

    asyncio.run(test())


def test_reader_that_starts_while_its_node_stops_is_ended_and_is_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, close = serving._Reader.start, serving.Page.close
    told: list[str] = []

    async def test() -> None:
        is_closing = asyncio.Event()

        async def late_start(about: Mapping[str, Any]) -> Any:
            await is_closing.wait()
            return await start(about)

        async def closed(page: serving.Page) -> None:
            asyncio.get_running_loop().call_later(0.05, is_closing.set)
            await close(page)
            async with looking(url) as late:
                told.append(await late.event())

        monkeypatch.setattr(serving._Reader, "start", late_start)
        monkeypatch.setattr(serving.Page, "close", closed)
        async with one_node(tmp_path) as (cluster, url), looking(url):
            await cluster.stop(1)
            assert readers() == []

    asyncio.run(test())
    assert told == ["trouble"]


def replaced(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Another program in the place of the reader."""
    monkeypatch.setattr(
        python_children, "python_command", lambda *_: [sys.executable, "-c", script]
    )


def test_reader_that_sends_no_frames_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced(monkeypatch, JUNK)
    monkeypatch.setattr(serving, "_ANSWER_SECONDS", 10 * SECONDS)  # nobody waits for an answer

    async def test() -> None:
        async with one_node(tmp_path) as (_, url):
            async with looking(url) as page:
                assert [await page.event(), await page.event()] == ["trouble", ""]
            await until_none_reads()

    asyncio.run(test())


def test_reader_that_does_not_answer_keeps_nobody_waiting_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced(monkeypatch, SILENT)
    monkeypatch.setattr(serving, "_ANSWER_SECONDS", 0.5)

    async def test() -> None:
        async with one_node(tmp_path) as (_, url), aiohttp.ClientSession() as http:

            async def past() -> tuple[int, str]:
                async with http.get(f"{url}/v1/page/past?offset=1") as answer:
                    return answer.status, (await answer.json())["error"]

            told = await asyncio.gather(*(past() for _ in range(9)))
            late = (503, "nobody reads for the page: no answer in time")
            assert told.count(late) == 8
            assert (503, "the page is asked too much at once: wait") in told

    asyncio.run(test())
