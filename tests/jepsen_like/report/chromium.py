"""A headless Chromium, driven by its own protocol: as much as a page needs to be tried out."""

import asyncio
import base64
import json
import re
import shutil
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

__all__ = ["Accessible", "Page", "browser", "chromium"]

_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--remote-debugging-port=0 --force-device-scale-factor=1"
)
_LISTENING = re.compile(r"DevTools listening on (ws://\S+)")
_SECONDS = 60.0
_KEYS: Mapping[str, Mapping[str, Any]] = {  # what the browser itself acts upon
    "Enter": {"text": "\r", "windowsVirtualKeyCode": 13},
    "Home": {"windowsVirtualKeyCode": 36},
    "ArrowDown": {"windowsVirtualKeyCode": 40},
    "ArrowUp": {"windowsVirtualKeyCode": 38},
    "Escape": {"windowsVirtualKeyCode": 27},
    "Tab": {"windowsVirtualKeyCode": 9},
}


def chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


class Accessible(NamedTuple):
    """An element as a screen reader is told of it."""

    role: str
    name: str
    properties: Mapping[str, Any]  # `level` of a heading, `live` of a region that speaks up


@dataclass
class Page:
    """`complaints`: all that reached the console, and exceptions that nobody caught."""

    socket: aiohttp.ClientWebSocketResponse
    session: str = ""
    complaints: list[str] = field(default_factory=list)
    _number: int = 0

    async def call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        sent = {"id": self._number, "method": method, "params": parameters}
        await self.socket.send_json(sent | ({"sessionId": self.session} if self.session else {}))
        while True:
            told = await self.socket.receive_json(timeout=_SECONDS)
            if told.get("id") == self._number:
                assert "error" not in told, f"{method}: {told['error']}"
                return told["result"]
            self._hear(told)

    async def value(self, expression: str) -> Any:
        """What an expression is worth in the page, after it has drawn once more."""
        drawn = f"new Promise(done => requestAnimationFrame(() => done({expression})))"
        found = await self.call(
            "Runtime.evaluate", expression=drawn, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def open(self, url: str, width: int, height: int, *, is_dark: bool = False) -> None:
        for domain in ("Runtime", "Log", "Page"):
            await self.call(f"{domain}.enable")
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])
        await self.call("Page.navigate", url=url)
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            drawn = await self.value("document.readyState + document.documentElement.dataset.drawn")
            if drawn == "completetrue":
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{url} was not drawn: {self.complaints}")

    async def press(self, key: str) -> None:
        known = _KEYS.get(key, {})
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, **known)

    async def mouse(self, kind: str, x: float, y: float, button: str = "none") -> None:
        await self.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button=button,
            buttons=int(button == "left"),
            clickCount=int(button == "left"),
        )

    async def accessible(self) -> list[Accessible]:
        """In the order of the document, without what is hidden from screen readers."""
        told = await self.call("Accessibility.getFullAXTree")
        return [
            Accessible(
                each["role"]["value"],
                each.get("name", {}).get("value", ""),
                {own["name"]: own["value"].get("value") for own in each.get("properties", ())},
            )
            for each in told["nodes"]
            if not each["ignored"]
        ]

    async def screenshot(self) -> bytes:
        """As PNG."""
        taken = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(taken["data"])

    def _hear(self, told: dict[str, Any]) -> None:
        match told.get("method"):
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded":
                self.complaints.append(json.dumps(told["params"]))
            case _:
                pass


@asynccontextmanager
async def browser(program: str, profile: Path) -> AsyncIterator[Page]:
    process = await asyncio.create_subprocess_exec(
        program,
        *_FLAGS.split(),
        f"--user-data-dir={profile}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        address = await asyncio.wait_for(_address(process.stderr), _SECONDS)
        async with aiohttp.ClientSession() as http, http.ws_connect(address, max_msg_size=0) as ws:
            page = Page(socket=ws)
            target = await page.call("Target.createTarget", url="about:blank")
            attached = await page.call(
                "Target.attachToTarget", targetId=target["targetId"], flatten=True
            )
            page.session = attached["sessionId"]
            yield page
    finally:
        process.kill()
        await process.communicate()


async def _address(output: asyncio.StreamReader) -> str:
    async for line in output:
        if found := _LISTENING.search(line.decode(errors="replace")):
            return found[1]
    raise AssertionError("Chromium ended before it listened")
