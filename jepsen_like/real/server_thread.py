"""Servers on several ports, in one thread with a loop of its own.

    with ServerThread("echo", "127.0.0.1", {7001: echo}) as thread:
        thread.do(lambda: ...)  # in the thread, from any other

What stands between nodes and clients must go on while the thread of a run waits for something. A
connection lasts until its coroutine ends; that sees to both of its ends, also when it is cancelled.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Self, TypeVar

__all__ = ["STREAM_BYTES_MAX", "ServerThread", "Streams"]

Result = TypeVar("Result")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Accept = Callable[[Streams], Coroutine[Any, Any, None]]
STREAM_BYTES_MAX = 1 << 20  # of a connection that are read ahead
_BACKLOG = 1000
_COMMAND_SECONDS = 10.0


class ServerThread:
    """Entering it listens on every port, or raises OSError; leaving it ends every connection."""

    def __init__(self, name: str, host: str, accepts: Mapping[int, Accept]) -> None:
        self._host = host
        self._accepts = accepts  # by port
        self._loop: asyncio.AbstractEventLoop
        self._over: asyncio.Event
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def do(self, action: Callable[[], Result]) -> Result:
        """In the thread, from any other; what it returns or raises."""

        async def act() -> Result:
            return action()

        return asyncio.run_coroutine_threadsafe(act(), self._loop).result(_COMMAND_SECONDS)

    # --- in the thread -----------------------------------------------------------------------

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Beside the connections; it ends with them at the latest."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        self._loop.call_later(seconds, action)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        servers: list[asyncio.Server] = []
        try:
            for port, accept in self._accepts.items():
                connected = partial(self._connected, accept)
                servers.append(
                    await asyncio.start_server(
                        connected, self._host, port, limit=STREAM_BYTES_MAX, backlog=_BACKLOG
                    )
                )
        except OSError as error:
            self._failure = error
            self._over.set()
        self._started.set()
        await self._over.wait()
        for server in servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(
        self, accept: Accept, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await accept((reader, writer))
        except asyncio.CancelledError:
            return  # all is over; asyncio's server would report it as an error (Python 3.11)
        finally:
            self._tasks.discard(task)
