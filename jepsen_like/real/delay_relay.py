"""The process of a delay line: it forwards requests at once, and answers later.

    python -m jepsen_like.real.delay_relay DIR

`jepsen_like.real.delay_line` starts and ends it, for commands that need no event loop.
"""

import asyncio
import sys
from pathlib import Path

from jepsen_like.real.delay_line import HOST, DelayLine

__all__ = ["serve"]

_PIECE_BYTES_MAX = 1 << 16
_PIECES_MAX = 10_000  # of a connection that wait; then its server is not read
_LOOK_SECONDS = 1.0


async def serve(line: DelayLine) -> None:
    """Serves until its directory is gone."""
    delay_seconds = line.plan.delay_ms / 1000
    servers = [
        await asyncio.start_server(_Relay(target, delay_seconds), HOST, port)
        for port, target in zip(line.plan.ports, line.plan.to, strict=True)
    ]
    while line.exists():  # noqa: ASYNC110  # nothing announces that it is gone
        await asyncio.sleep(_LOOK_SECONDS)
    for server in servers:
        server.close()


class _Relay:
    """Forwards each connection to one port."""

    def __init__(self, target: str, delay_seconds: float) -> None:
        host, _, port = target.rpartition(":")
        self._host, self._port = host, int(port)
        self._delay_seconds = delay_seconds

    async def __call__(self, asker: asyncio.StreamReader, to_asker: asyncio.StreamWriter) -> None:
        """Forwards both ways, until either end closes."""
        try:
            server, to_server = await asyncio.open_connection(self._host, self._port)
        except OSError:
            to_asker.close()
            return
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_forward(asker, to_server))
                tasks.create_task(self._forward_later(server, to_asker, tasks))
        except* (OSError, EOFError):
            pass
        finally:
            to_asker.transport.abort()
            to_server.transport.abort()

    async def _forward_later(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        tasks: asyncio.TaskGroup,
    ) -> None:
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_PIECES_MAX)
        tasks.create_task(_deliver(waiting, sink))
        while piece := await source.read(_PIECE_BYTES_MAX):
            await waiting.put((loop.time() + self._delay_seconds, piece))
        raise EOFError


async def _deliver(
    waiting: "asyncio.Queue[tuple[float, bytes]]", sink: asyncio.StreamWriter
) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due, piece = await waiting.get()
        await asyncio.sleep(max(0.0, due - loop.time()))
        sink.write(piece)
        await sink.drain()


async def _forward(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while piece := await source.read(_PIECE_BYTES_MAX):
        sink.write(piece)
        await sink.drain()
    raise EOFError


def _main(directory: str) -> None:
    line = DelayLine.open(Path(directory))
    assert line is not None, f"no delay line in {directory}"
    asyncio.run(serve(line))


if __name__ == "__main__":
    _main(*sys.argv[1:])
