"""Serves the page: its files, and what the reader beside this process says.

A node does so for its cluster, and `quorumlab top --page` for any.

The reader (`quorumlab.web.reader`) is started when somebody looks, and ends half a minute after the
last one has left. What it says goes to browsers as it comes.
"""

import asyncio
import json
import re
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any

from wire.http import Answer, Route, StreamRoute

__all__ = ["Page"]

_SCRIPTS = ("table.js", "live.js", "story.js", "page.js")
_FRAME_BYTES_MAX = 1 << 26
_BEHIND_MAX = 30  # seconds' changes that wait for a slow browser, which then begins anew
_LINGER_SECONDS = 30.0
_ANSWER_SECONDS = 30.0  # a state long ago in a long log takes its time
_END_SECONDS = 2.0
_EVERYBODY = 0
_OUTSTANDING_MAX = 8  # questions to a reader


class Page:
    def __init__(self, about: Callable[[], Mapping[str, Any]]) -> None:
        """`about`: what a reader is told when one is started (`reader_keys`)."""
        self._about = about
        self._reader: _Reader | None = None
        self._starting = asyncio.Lock()
        self._watchers = 0
        self._lingering: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def routes(self) -> Mapping[str, Route]:
        return {
            "/": lambda _: _html(),
            "/v1/page/past": self._past,
            "/v1/page/story": self._story,
        }

    def streams(self) -> Mapping[str, StreamRoute]:
        return {"/v1/page/events": self._events}

    async def close(self) -> None:
        """Once and for all."""
        self._is_closed = True
        async with self._starting:  # whoever starts one ends it
            self._linger()
            if self._reader is not None:
                await self._reader.close()
        await asyncio.gather(*self._ending)

    # --- what is asked -----------------------------------------------------------------------

    async def _past(self, query: Mapping[str, str]) -> Answer:
        text = query.get("offset", "")
        if not re.fullmatch("-?[0-9]{1,18}", text):
            return Answer.json({"error": f"offset is {text!r:.40}, no whole number"}, 400)
        return await self._ask({"ask": "past", "offset": int(text)})

    async def _story(self, query: Mapping[str, str]) -> Answer:
        subject = query.get("subject", "")
        if not subject:
            return Answer.json({"error": "say whose story: ?subject=orders-3"}, 400)
        return await self._ask({"ask": "story", "subject": subject})

    async def _ask(self, asked: dict[str, Any]) -> Answer:
        try:
            reader = await self._started()
            if reader.outstanding >= _OUTSTANDING_MAX:
                return Answer.json({"error": "the page is asked too much at once: wait"}, 503)
            content = await self._watching(reader, asked)
        except OSError as error:
            return Answer.json({"error": _why(error)}, 503)
        return Answer(content_type="application/json", body=content)

    async def _watching(self, reader: "_Reader", asked: dict[str, Any]) -> bytes:
        self._watchers += 1
        try:
            return await reader.ask(asked)
        finally:
            self._left()

    async def _events(self) -> AsyncGenerator[tuple[str, bytes], None]:
        """First the whole, then what changes; the page leaves out what the whole had."""
        try:
            reader = await self._started()
        except OSError as error:
            yield "trouble", json.dumps(_why(error)).encode()
            return
        changes = reader.subscribe()
        self._watchers += 1
        try:
            yield "whole", await reader.ask({"ask": "whole"})
            while (change := await changes.get()) is not None:
                yield "change", change
        except OSError as error:
            yield "trouble", json.dumps(_why(error)).encode()
        finally:
            reader.unsubscribe(changes)
            self._left()

    # --- the reader --------------------------------------------------------------------------

    async def _started(self) -> "_Reader":
        """Raises OSError."""
        async with self._starting:
            if self._is_closed:
                raise ConnectionAbortedError("this process stops")
            if self._reader is None or self._reader.is_over:
                self._reader = await _Reader.start(self._about())
            return self._reader

    def _left(self) -> None:
        self._watchers -= 1
        if self._watchers == 0:
            self._stop_lingering()
            loop = asyncio.get_running_loop()
            self._lingering = loop.call_later(_LINGER_SECONDS, self._linger)

    def _stop_lingering(self) -> None:
        if self._lingering is not None:
            self._lingering.cancel()

    def _linger(self) -> None:
        """Over: nobody has come."""
        self._stop_lingering()
        if self._watchers == 0 and self._reader is not None:
            task = asyncio.ensure_future(self._reader.close())
            self._reader = None
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


def _why(error: OSError) -> str:
    """A time-out says nothing itself."""
    return f"nobody reads for the page: {str(error) or 'no answer in time'}"


def _html() -> Answer:
    from jepsen_like.report.parts import digest, filled, part  # once somebody looks

    style = part(__package__, "page.css")
    script = "\n".join(part(__package__, name) for name in _SCRIPTS)
    allowed = f"style-src {digest(style)}; script-src {digest(script)}; connect-src 'self'"
    html = filled(
        __package__,
        {"policy": f"default-src 'none'; {allowed}", "style": style, "script": script},
    )
    return Answer(content_type="text/html; charset=utf-8", body=html.encode())


class _Reader:
    """One process of `quorumlab.web.reader`, and who waits for what it says."""

    def __init__(self, process: Process) -> None:
        self.is_over = False
        self._process = process
        self._numbers = count(_EVERYBODY + 1)
        self._asked: dict[int, asyncio.Future[bytes]] = {}
        self._subscribed: set[asyncio.Queue[bytes | None]] = set()
        self._hearing = asyncio.ensure_future(self._hear())

    @classmethod
    async def start(cls, about: Mapping[str, Any]) -> "_Reader":
        from jepsen_like.python_children import python_command, python_environment
        from quorumlab.web.reader_keys import KEYS

        public = {name: value for name, value in about.items() if name != "keys"}
        return cls(
            await asyncio.create_subprocess_exec(
                *python_command("quorumlab.web.reader", json.dumps(public)),
                stdin=PIPE,
                stdout=PIPE,
                start_new_session=True,  # a terminal's Ctrl-C is for the node
                env={**python_environment(), KEYS: json.dumps(about["keys"])},
                limit=_FRAME_BYTES_MAX,
            )
        )

    @property
    def outstanding(self) -> int:
        return len(self._asked)

    async def ask(self, asked: Mapping[str, Any]) -> bytes:
        """Raises OSError when the reader ends, TimeoutError when it takes too long."""
        if self.is_over:
            raise ConnectionResetError("the reader has ended")
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"number": number, **asked}).encode() + b"\n")
            return await asyncio.wait_for(answer, _ANSWER_SECONDS)
        finally:
            del self._asked[number]

    def subscribe(self) -> asyncio.Queue[bytes | None]:
        changes: asyncio.Queue[bytes | None] = asyncio.Queue(_BEHIND_MAX)
        self._subscribed.add(changes)
        if self.is_over:
            changes.put_nowait(None)
        return changes

    def unsubscribe(self, changes: asyncio.Queue[bytes | None]) -> None:
        self._subscribed.discard(changes)

    async def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _END_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._hearing

    async def _hear(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                line = await self._process.stdout.readuntil()
                number, size = map(int, line.split())
                self._give(number, await self._process.stdout.readexactly(size))
        except asyncio.IncompleteReadError:
            pass  # it has ended
        except (asyncio.LimitOverrunError, ValueError):  # no frame of ours
            with suppress(ProcessLookupError):
                self._process.kill()
        finally:
            self._end_all()

    def _end_all(self) -> None:
        self.is_over = True
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError("the reader has ended"))
        for changes in tuple(self._subscribed):
            self._end(changes)

    def _give(self, number: int, content: bytes) -> None:
        if number == _EVERYBODY:
            for changes in tuple(self._subscribed):
                if changes.full():
                    self._end(changes)
                else:
                    changes.put_nowait(content)
            return
        answer = self._asked.get(number)
        if answer is not None and not answer.done():
            answer.set_result(content)

    def _end(self, changes: asyncio.Queue[bytes | None]) -> None:
        """The browser comes again by itself."""
        self._subscribed.discard(changes)
        while not changes.empty():
            changes.get_nowait()
        changes.put_nowait(None)
