"""The page of a node in a real browser, while a broker dies and comes back."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.cli import main
from tests.jepsen_like.report.chromium import Page, browser, chromium
from tests.started import started

pytestmark = pytest.mark.extra

SIZES = [(1280, 900), (390, 844)]
HEADLINE = "byId('headline').textContent"
ROWS = "[...document.querySelectorAll('#partitions tbody tr')].map(row => row.innerText)"
COLOURS = """(() => {
  const canvas = byId("map");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return new Set(new Uint32Array(pixels.buffer)).size;
})()"""


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    if chromium() is None:
        pytest.skip("no Chromium: the page is not looked at in a browser")
    path = tmp_path_factory.mktemp("page")
    with started(LocalCluster.create(path, controllers=1, brokers=3)) as cluster:
        line = "topics create orders --partitions 6 --replication-factor 3 --bootstrap-server"
        assert main([*line.split(), cluster.layout.bootstrap_servers]) == 0
        yield cluster


def looked_at(
    cluster: LocalCluster,
    profile: Path,
    trial: Callable[[Page], Awaitable[None]],
    size: tuple[int, int] = SIZES[0],
    *,
    is_dark: bool = False,
) -> None:
    program, node = chromium(), cluster.layout.node(1)
    assert program is not None

    async def look() -> None:
        async with browser(program, profile) as opened:
            url = f"http://{node.host}:{node.http_port}/"
            await opened.open(url, *size, is_dark=is_dark)
            await trial(opened)
            assert opened.complaints == []

    asyncio.run(look())


async def until(opened: Page, expression: str) -> None:
    for _ in range(300):
        if await opened.value(expression):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"never: {expression}; {await opened.value('document.body.innerText')}")


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES, ids=["desktop", "phone"])
def test_everything_is_there(
    orders: LocalCluster, tmp_path: Path, size: tuple[int, int], is_dark: bool
) -> None:
    async def trial(opened: Page) -> None:
        await until(opened, f"{HEADLINE}.startsWith('All ')")
        assert await opened.value(COLOURS) >= 4  # three leaders, and between the squares
        assert await opened.value("document.documentElement.scrollWidth") <= size[0]
        assert len(await opened.value(ROWS)) >= 6
        assert await opened.value("byId('brokers').tBodies[0].rows.length") == 3
        assert "Metadata names broker" in await opened.value("byId('views-why').textContent")

    looked_at(orders, tmp_path, trial, size, is_dark=is_dark)


def test_death_of_a_broker_is_seen_told_and_gone_back_over(
    orders: LocalCluster, tmp_path: Path
) -> None:
    async def trial(opened: Page) -> None:
        await until(opened, f"{HEADLINE}.startsWith('All ')")
        orders.kill(3)
        try:
            await until(opened, f"{HEADLINE}.includes('broker 3 (fenced')")
            await until(opened, f"{ROWS}[0].includes('not in sync: 3')")
            await opened.value("document.querySelector('#partitions td button').focus()")
            await opened.press("Enter")
            await until(opened, "byId('story-table').innerText.includes('broker 3 fell out')")
            assert "No answer within a second from node 3" in await opened.value(
                "byId('story-note').textContent"
            )
            await opened.value("byId('at').focus()")
            await opened.press("Home")
            await until(opened, "past !== null && document.body.classList.contains('past')")
            assert await opened.value(f"{HEADLINE}") == "Then: No partitions yet"
            await opened.value("byId('now').focus()")
            await opened.press("Enter")
            await until(opened, f"{HEADLINE}.includes('broker 3 (fenced')")
        finally:
            orders.start(3)
        await until(opened, f"{HEADLINE}.startsWith('All ')")

    looked_at(orders, tmp_path, trial)


def test_node_that_dies_is_missed_and_found_again(orders: LocalCluster, tmp_path: Path) -> None:
    async def trial(opened: Page) -> None:
        await until(opened, "byId('link').textContent === 'live'")
        orders.kill(1)
        try:
            await until(opened, "byId('link').textContent.startsWith('no connection')")
        finally:
            orders.start(1)
        await until(opened, f"{HEADLINE}.startsWith('All ')")
        await until(opened, "byId('link').textContent === 'live'")
        opened.complaints.clear()  # of the connection that was lost

    looked_at(orders, tmp_path, trial)
