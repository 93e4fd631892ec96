"""A long way to servers that are near: what they answer arrives so many milliseconds later.

    line = DelayLine.create(DIR, to=["127.0.0.1:2181"], delay_ms=4, ports=free_ports())
    line.start(); ...; line.stop()         # line.connect is where to connect

A process of its own, known by its pid file, so that whoever comes later can end it; it ends by
itself when its directory is gone. Requests pass at once and answers wait, each for the whole time
and none for another: what is asked in a row costs the delay each, what is pipelined costs it once.

    DIR/delay.json            what leads where
    DIR/node.pid, node.log    its process, and what it printed
"""

import asyncio
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from jepsen_like.real.processes import ProcessId, end, is_alive, spawn

__all__ = ["DelayLine"]

_HOST = "127.0.0.1"
_PIECE_BYTES_MAX = 1 << 16
_PIECES_MAX = 10_000  # of a connection that wait; then its server is not read
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    delay_ms: int
    ports: tuple[int, ...]
    to: tuple[str, ...]  # host:port, for each of the ports


class DelayLine:
    def __init__(self, directory: Path, plan: _Plan) -> None:
        self.directory = directory
        self._plan = plan

    @classmethod
    def create(
        cls, directory: Path, *, to: Sequence[str], delay_ms: int, ports: Iterator[int]
    ) -> "DelayLine":
        assert delay_ms > 0, delay_ms
        plan = _Plan(delay_ms=delay_ms, ports=tuple(next(ports) for _ in to), to=tuple(to))
        directory.mkdir(parents=True, exist_ok=True)
        _file(directory).write_text(json.dumps(asdict(plan)))
        return cls(directory, plan)

    @classmethod
    def open(cls, directory: Path) -> "DelayLine | None":
        """None if there is none."""
        try:
            stored = json.loads(_file(directory).read_text())
        except FileNotFoundError:
            return None
        plan = _Plan(
            delay_ms=stored["delay_ms"], ports=tuple(stored["ports"]), to=tuple(stored["to"])
        )
        return cls(directory, plan)

    @property
    def connect(self) -> str:
        return ",".join(f"{_HOST}:{port}" for port in self._plan.ports)

    @property
    def _pid_file(self) -> Path:
        return self.directory / "node.pid"

    def start(self) -> None:
        """If it does not run. Raises OSError."""
        if not is_alive(ProcessId.load(self._pid_file)):
            command = [sys.executable, "-m", __name__, str(self.directory)]
            spawn(command, log=self.directory / "node.log").save(self._pid_file)

    def stop(self) -> None:
        process = ProcessId.load(self._pid_file)
        if process is not None:
            end(process, how=signal.SIGKILL, timeout_seconds=10.0)
        self._pid_file.unlink(missing_ok=True)

    # --- in its process ----------------------------------------------------------------------

    async def serve(self) -> None:
        """Until its directory is gone."""
        delay_seconds = self._plan.delay_ms / 1000
        servers = [
            await asyncio.start_server(_Relay(target, delay_seconds), _HOST, port)
            for port, target in zip(self._plan.ports, self._plan.to, strict=True)
        ]
        while _file(self.directory).exists():  # noqa: ASYNC110  # nobody tells that it is gone
            await asyncio.sleep(_LOOK_SECONDS)
        for server in servers:
            server.close()


class _Relay:
    """What is done with each connection to one port."""

    def __init__(self, target: str, delay_seconds: float) -> None:
        host, _, port = target.rpartition(":")
        self._host, self._port = host, int(port)
        self._delay_seconds = delay_seconds

    async def __call__(self, asker: asyncio.StreamReader, to_asker: asyncio.StreamWriter) -> None:
        """Both ways, until either end closes."""
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


def _file(directory: Path) -> Path:
    return directory / "delay.json"


def main(directory: str) -> None:
    line = DelayLine.open(Path(directory))
    assert line is not None, f"no delay line in {directory}"
    asyncio.run(line.serve())


if __name__ == "__main__":
    main(*sys.argv[1:])
