"""The page in a real browser: it fits, wide and narrow, in both schemes, and nothing complains."""

import asyncio
from pathlib import Path

import pytest

from quorumlab.compare.page import page
from tests.jepsen_like.report.chromium import Page, browser, chromium
from tests.quorumlab.compare.compared import compared
from tests.quorumlab.compare.test_answers import ONCE

pytestmark = pytest.mark.extra

# Of the elements that a reader looks at: those with no size, or that stick out of the page.
LOST = """[...document.querySelectorAll("section h2, .brief svg, figure svg")]
  .map(each => each.getBoundingClientRect())
  .filter(box => !box.width || !box.height || box.right > innerWidth + 1).length"""
# Labels of a plot that it cuts off.
CUT = """[...document.querySelectorAll("figure text")].filter(each => {
  const box = each.getBoundingClientRect(), plot = each.closest("svg").getBoundingClientRect();
  return box.left < plot.left || box.right > plot.right || box.bottom > plot.bottom;
}).length"""
OPENED = """(document.querySelectorAll("details").forEach(each => each.open = true),
  document.documentElement.scrollWidth)"""
CLOSED = """(document.querySelectorAll("details.all").forEach(each => each.open = false), 0)"""
SIZES = (10, 100, 1000, 10_000, 20_000, 1_000_000)
# How red the text and the ground are: enough to tell which is the lighter.
LIGHTNESS = """(() => {
  const style = getComputedStyle(document.body);
  return [style.color, style.backgroundColor].map(each => Number(each.match(/\\d+/)[0]));
})()"""


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 900), (390, 844)], ids=["desktop", "phone"])
def test_everything_is_drawn_and_fits(tmp_path: Path, size: tuple[int, int], is_dark: bool) -> None:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium: the page is not looked at in a browser")
    path = tmp_path / "compare.html"
    path.write_text(page(compared(tmp_path, SIZES)), encoding="ascii")

    async def act(program: str) -> None:
        async with browser(program, tmp_path / "profile") as opened:
            await opened.open(path.absolute().as_uri(), *size, is_dark=is_dark)
            assert await opened.value("document.documentElement.scrollWidth") <= size[0]
            assert await opened.value("document.querySelectorAll('.bars svg').length") > 100
            assert await opened.value(OPENED) <= size[0], "with everything opened"
            assert await opened.value(CLOSED) == 0
            assert await opened.value(LOST) == 0
            assert await opened.value(CUT) == 0
            text, ground = await opened.value(LIGHTNESS)
            assert (text > ground) == is_dark, (text, ground)
            assert opened.complaints == []

    asyncio.run(act(program))


def test_a_slide_is_a_screen_and_arrow_keys_turn_it(tmp_path: Path) -> None:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium: the page is not looked at in a browser")
    path = tmp_path / "compare.html"
    path.write_text(page(ONCE), encoding="ascii")

    async def act(program: str) -> None:
        async with browser(program, tmp_path / "profile") as opened:
            await opened.open(path.absolute().as_uri(), 1280, 800)
            heights = "[...document.querySelectorAll('.slide')].map(each => each.offsetHeight)"
            assert await opened.value(heights) == [800] * 3
            for key, place in (("ArrowDown", 800), ("ArrowDown", 1600), ("ArrowUp", 800)):
                await opened.press(key)
                assert await settled(opened) == place

    asyncio.run(act(program))


async def settled(opened: Page) -> int:
    """Where the page is once it no longer scrolls."""
    before = -1
    for _ in range(50):
        await asyncio.sleep(0.2)
        at = int(await opened.value("Math.round(scrollY)"))
        if at == before:
            break
        before = at
    return before
