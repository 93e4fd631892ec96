"""Connections through a proxy: a thread that accepts them, and the frames that pass on each.

    with ServerThread("echo", {7001: echo}) as thread:
        thread.do(lambda: ...)  # in the thread, from any other

A proxy must go on while the thread of a run waits for something, so that its servers have a thread
with a loop of their own. A connection lasts until its coroutine ends; the coroutine sees to both
ends of it, also when it is cancelled.

A `Relay` passes frames of the asker to the asked, and the answers back. A frame is four bytes of
length and so many bytes, in Kafka's protocol and in ZooKeeper's alike. Each direction is a queue of
frames, which the impairments of its flow hold up. The content of a frame is not looked at here.
Where TLS passes, its records take the place of frames: what is in them, nobody between can read.
"""

import asyncio
import socket
import ssl
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from struct import Struct, pack
from typing import Any, Self, TypeVar

from jepsen_like.real.impairments import Flow
from jepsen_like.real.layout import HOST
from wire.framing import FRAME_BYTES_MAX

__all__ = [
    "LENGTH",
    "LENGTHS",
    "STREAM_BYTES_MAX",
    "TLS_RECORDS",
    "Framing",
    "NoFrame",
    "Relay",
    "ServerThread",
    "Streams",
    "read_frame",
    "reset",
]

Result = TypeVar("Result")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Accept = Callable[[Streams], Coroutine[Any, Any, None]]
STREAM_BYTES_MAX = 1 << 20  # of a connection that are read ahead
_BACKLOG = 1000
_COMMAND_SECONDS = 10.0


class ServerThread:
    """Entering it listens on every port, or raises OSError; leaving it ends every connection."""

    def __init__(
        self, name: str, accepts: Mapping[int, Accept], tls: ssl.SSLContext | None = None
    ) -> None:
        self._accepts = accepts  # by port
        self._tls = tls
        self._loop: asyncio.AbstractEventLoop
        self._over: asyncio.Event
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name=name, daemon=True
        )

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

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        servers: list[asyncio.Server] = []
        try:
            for port, accept in self._accepts.items():
                connected = partial(self._connected, accept)
                servers.append(
                    await asyncio.start_server(
                        connected,
                        HOST,
                        port,
                        limit=STREAM_BYTES_MAX,
                        backlog=_BACKLOG,
                        ssl=self._tls,
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


LENGTH = Struct(">i")
_FRAMES_MAX = 1000  # that wait in one direction of one connection; then it is not read


_TLS_RECORD = Struct(">BHH")  # type, version, length (RFC 8446, 5.1)
_TLS_BYTES_MAX = (1 << 14) + 2048  # of a record's content, in TLS 1.2
_TLS_TYPES = range(20, 25)


@dataclass(frozen=True, slots=True)
class Framing:
    """How the bytes of a connection are cut into frames, and put together again."""

    read: Callable[[asyncio.StreamReader], Awaitable[bytes | None]]
    parts: Callable[[bytes], Sequence[bytes]]  # as they are written


class FrameQueue:
    """Frames, then the end."""

    def __init__(self, flow: Flow, writer: asyncio.StreamWriter, framing: Framing) -> None:
        self._flow = flow
        self._parts = framing.parts
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[float, bytes | None]] = deque()
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.is_ended = False  # nothing more gets through

    def put(self, frame: bytes | None) -> None:
        """None: the end, behind all that waits."""
        self.is_ended |= frame is None
        self._waiting.append((self._loop.time() + self._flow.later_seconds(), frame))
        self._filled.set()
        if len(self._waiting) >= _FRAMES_MAX:
            self._room.clear()

    async def has_room(self) -> None:
        await self._room.wait()

    async def run(self) -> None:
        """Until the end has been told."""
        while True:
            await self._filled.wait()
            due, frame = self._waiting.popleft()
            if not self._waiting:
                self._filled.clear()
            self._room.set()
            await asyncio.sleep(due - self._loop.time())
            try:
                if frame is None:
                    await self._tell_end()
                    return
                await self._write(frame)
            except OSError:
                continue  # who should get it is gone; its own end will come the other way

    async def _write(self, frame: bytes) -> None:
        await self._flow.pass_cut("frames")
        if not self._writer.is_closing():
            self._writer.writelines(self._parts(frame))
            await self._writer.drain()

    async def _tell_end(self) -> None:
        await self._flow.pass_cut("closes")
        await asyncio.sleep(self._flow.close_seconds())
        self._writer.close()
        await self._writer.wait_closed()


class NoFrame(Exception):
    """The bytes do not begin with the length of a frame."""


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """The next frame without its length; None at the end, of which half a frame is a part."""
    try:
        (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        if not 0 <= length <= FRAME_BYTES_MAX:
            raise NoFrame
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
        return None


async def _read_record(reader: asyncio.StreamReader) -> bytes | None:
    """The next record of TLS, with its header."""
    try:
        header = await reader.readexactly(_TLS_RECORD.size)
        kind, _, length = _TLS_RECORD.unpack(header)
        if kind not in _TLS_TYPES or length > _TLS_BYTES_MAX:
            raise NoFrame
        return header + await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


LENGTHS = Framing(read_frame, lambda frame: (LENGTH.pack(len(frame)), frame))
TLS_RECORDS = Framing(_read_record, lambda record: (record,))


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection so that the other end sees a reset, not an orderly end."""
    transport = writer.transport
    if not transport.is_closing():
        linger = pack("ii", 1, 0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    transport.abort()


class Relay:
    """`await Relay(...).run()` until both ends are gone."""

    def __init__(
        self,
        *,
        asker: Streams,
        asked: Streams,
        requests: Flow,
        answers: Flow,
        framing: Framing = LENGTHS,
    ) -> None:
        self._from_asker, self._to_asker = asker
        self._from_asked, self._to_asked = asked
        self._read = framing.read
        self._requests = FrameQueue(requests, self._to_asked, framing)
        self._answers = FrameQueue(answers, self._to_asker, framing)

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read_requests())
                tasks.create_task(self._read_answers())
                tasks.create_task(self._requests.run())
                tasks.create_task(self._answers.run())
        except* NoFrame:
            pass  # another protocol is not for this proxy: both ends are told below
        finally:
            self.reset()

    def reset(self) -> None:
        """Both ends see their connection reset."""
        for queue in (self._requests, self._answers):
            queue.put(None)
        for writer in (self._to_asker, self._to_asked):
            reset(writer)

    def leave_asker(self) -> None:
        """The asker sees the end at once, the asked node when its flow tells it."""
        self._to_asker.close()
        self._from_asker.feed_eof()

    async def _read_requests(self) -> None:
        while (frame := await self._read(self._from_asker)) is not None:
            self._take_request(frame)
            await self._requests.has_room()
        self._requests.put(None)

    async def _read_answers(self) -> None:
        while (frame := await self._read(self._from_asked)) is not None:
            self._take_answer(frame)
            await self._answers.has_room()
        self._answers.put(None)

    def _take_request(self, frame: bytes) -> None:
        self._requests.put(frame)

    def _take_answer(self, frame: bytes) -> None:
        self._answers.put(frame)
