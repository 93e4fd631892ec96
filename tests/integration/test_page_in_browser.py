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
OPERABLE = ("button", "slider", "searchbox", "textbox", "link")
FOCUSED = "(each => each.id || each.textContent || 'body')(document.activeElement)"
# Texts with less contrast than 4.5 : 1 (WCAG 2.2, 1.4.3), none of which is large here.
FAINT = """(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue]
      .map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const found = parts(getComputedStyle(node).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const faint = new Set();
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !node.checkVisibility()) continue;
    const [one, other] = [parts(getComputedStyle(node).color), ground(node)].map(light);
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) faint.add(`${node.tagName} ${node.className} ${ratio.toFixed(1)}`);
  }
  return [...faint];
})()"""
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


def test_screen_reader_is_told_everything_by_name(orders: LocalCluster, tmp_path: Path) -> None:
    async def trial(opened: Page) -> None:
        await until(opened, f"{HEADLINE}.startsWith('All ')")
        told = await opened.accessible()
        assert [each for each in told if each.role in OPERABLE and not each.name] == []
        names = {
            role: [each.name for each in told if each.role == role] for role in ("table", "region")
        }
        tables = ["Brokers", "Controllers", "Two views", "Partitions"]
        assert names == {"table": tables, "region": ["Time: the metadata log", *tables, "Log"]}
        roles = {each.role for each in told}
        assert roles >= {"banner", "main", "contentinfo", "rowheader", "columnheader", "listitem"}
        headings = [each.properties["level"] for each in told if each.role == "heading"]
        assert headings == [1, *[2] * len(names["region"])]
        live = await opened.value(
            "[...document.querySelectorAll('[aria-live], [role=status], [role=alert]')]"
            ".map(each => each.id)"
        )
        assert live == ["link", "headline", "trouble", "moment"]

    looked_at(orders, tmp_path, trial)


def test_keyboard_reaches_everything_and_keeps_its_place(
    orders: LocalCluster, tmp_path: Path
) -> None:
    async def trial(opened: Page) -> None:
        await until(opened, f"{HEADLINE}.startsWith('All ')")
        reached: list[str] = []
        while not reached or reached[-1] not in ("body", *reached[:-1]):
            await opened.press("Tab")
            reached.append(await opened.value(FOCUSED))
        assert reached[:4] == ["back", "at", "on", "now"]
        assert {"1", "2", "3", "filter", "orders-0", "orders-5", "log"} <= {*reached}

        await opened.value("document.querySelector('#brokers tbody button').focus()")
        before = await opened.value("live.turn")
        await until(opened, f"live.turn > {before + 3}")  # requests a second have changed
        assert await opened.value(FOCUSED) == "1"
        await opened.press("Enter")
        await until(opened, "byId('story-table').innerText.includes('registered')")
        await opened.press("Escape")
        assert await opened.value("byId('story').hidden")
        assert await opened.value(FOCUSED) == "1"

    looked_at(orders, tmp_path, trial)


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(
    orders: LocalCluster, tmp_path: Path, is_dark: bool
) -> None:
    async def trial(opened: Page) -> None:
        await until(opened, f"{HEADLINE}.startsWith('All ')")
        assert await opened.value(FAINT) == []
        told = "byId('chaos').textContent = byId('trouble').textContent = 'trouble'"
        assert await opened.value(f"(document.body.classList.add('past'), {told}, {FAINT})") == []

    looked_at(orders, tmp_path, trial, is_dark=is_dark)


def test_death_of_a_broker_is_seen_told_and_gone_back_over(
    orders: LocalCluster, tmp_path: Path
) -> None:
    async def trial(opened: Page) -> None:
        await until(opened, f"{HEADLINE}.startsWith('All ')")
        orders.kill(3)
        try:
            await until(opened, f"{HEADLINE}.includes('broker 3 (fenced')")
            await until(opened, f"{ROWS}[0].includes('not in sync: 3')")
            await opened.value("document.querySelector('#partitions tbody button').focus()")
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
