"""The page in a real browser: it draws, answers pointer and keys, and complains of nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from jepsen_like.checkers import judge
from jepsen_like.histories.history import Header, History
from jepsen_like.report.document import Told
from jepsen_like.report.page import page
from tests.jepsen_like.report.chromium import Page, browser, chromium
from tests.jepsen_like.report.test_page import HOSTILE, lossy

pytestmark = pytest.mark.extra

SIZES = [(1280, 900), (390, 844)]
# How much of a canvas is painted: a number of different colours.
COLOURS = """(() => {
  const canvas = document.querySelector("%s");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return new Set(new Uint32Array(pixels.buffer)).size;
})()"""


def tried(
    tmp_path: Path,
    history: History,
    trial: Callable[[Page], Awaitable[None]],
    size: tuple[int, int] = SIZES[0],
    *,
    is_dark: bool = False,
) -> None:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium: the page is not looked at in a browser")

    path = tmp_path / "report.html"
    path.write_text(page(history, Told(verdict=judge(history))), encoding="ascii")

    async def act(program: str) -> None:
        async with browser(program, tmp_path / "profile") as opened:
            await opened.open(path.absolute().as_uri(), *size, is_dark=is_dark)
            await trial(opened)
            assert opened.complaints == []

    asyncio.run(act(program))


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES, ids=["desktop", "phone"])
def test_everything_is_drawn(tmp_path: Path, size: tuple[int, int], is_dark: bool) -> None:
    async def trial(opened: Page) -> None:
        for canvas in ("#lanes", "#overview", "#latency canvas", "#unseen canvas"):
            assert await opened.value(COLOURS % canvas) > 5, canvas
        assert await opened.value("document.documentElement.scrollWidth") <= size[0]
        assert "violated" in await opened.value("document.getElementById('outcome').textContent")
        assert await opened.value("document.querySelectorAll('#faults tbody tr').length") == 1

    tried(tmp_path, lossy().history, trial, size, is_dark=is_dark)


def test_pointer_and_keys_tell_of_operations(tmp_path: Path) -> None:
    async def trial(opened: Page) -> None:
        tip = (
            "document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText"
        )
        where = """(() => {
          lanes.scrollIntoView();
          const frame = lanes.getBoundingClientRect(), bar = box(data.findings[0].operations[0]);
          return [frame.left + bar[0] + bar[2] / 2, frame.top + bar[1] + bar[3] / 2];
        })()"""
        x, y = await opened.value(where)
        await opened.mouse("mouseMoved", x, y)
        assert "[['send', 'a-0', [0, 1]]]" in await opened.value(tip)
        await opened.value("lanes.focus()")
        await opened.press("ArrowRight")
        assert "a-0 2" in await opened.value(tip)
        assert "send by process 0: ok" in await opened.value(
            "document.getElementById('live').textContent"
        )
        await opened.press("Escape")
        assert await opened.value(tip) == ""

    tried(tmp_path, lossy().history, trial)


def test_view_is_zoomed_and_dragged(tmp_path: Path) -> None:
    async def trial(opened: Page) -> None:
        await opened.value("[lanes.scrollIntoView(), view.show(0, END)] && null")
        await opened.value("document.getElementById('zoom-in').click()")
        begin, end = await opened.value("[view.from, view.to]")
        assert end - begin == pytest.approx(3_100_000 / 2, rel=0.05)
        left, top = await opened.value("(b => [b.left, b.top])(lanes.getBoundingClientRect())")
        await opened.mouse("mousePressed", left + 500, top + 60, "left")
        await opened.mouse("mouseMoved", left + 300, top + 60, "left")
        await opened.mouse("mouseReleased", left + 300, top + 60, "left")
        moved = await opened.value("view.from")
        assert moved > begin

    tried(tmp_path, lossy().history, trial)


def test_empty_and_hostile_histories_complain_of_nothing(tmp_path: Path) -> None:
    async def trial(opened: Page) -> None:
        assert await opened.value("document.querySelectorAll('script').length") == 2

    header = Header(workload=HOSTILE, seed=0)
    tried(tmp_path, History(header=header, ops=[]), trial)
    (tmp_path / "more").mkdir()
    tried(tmp_path / "more", History(header=header, ops=lossy().history.ops), trial)
