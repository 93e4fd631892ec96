"""A long way to servers that are near: their answers arrive some milliseconds later.

    line = DelayLine.create(DIR, to=["127.0.0.1:2181"], delay_ms=4, ports=free_ports())
    line.start(); ...; line.stop()         # line.connect is where to connect

A delay line is a process of its own (`python -m jepsen_like.real.delay_line DIR`), known by its pid
file, so that any later process can end it; it ends by itself when its directory is gone. Requests
pass at once. Each answer waits for the whole delay, and none waits for another: questions that are
asked in a row cost the delay each, pipelined ones cost it once.

    DIR/delay.json            the ports, and the server behind each
    DIR/node.pid, node.log    its process, and what it printed
"""

import asyncio
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from jepsen_like.python_children import python_command, python_environment
from jepsen_like.real.processes import ProcessId, end, is_alive, spawn

__all__ = ["DelayLine", "serve"]

HOST = "127.0.0.1"
_RELAY = "jepsen_like.real.delay_line"


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayPlan:
    delay_ms: int
    ports: tuple[int, ...]
    to: tuple[str, ...]  # host:port, for each of the ports


class DelayLine:
    def __init__(self, directory: Path, plan: DelayPlan) -> None:
        self.directory = directory
        self.plan = plan

    @classmethod
    def create(
        cls, directory: Path, *, to: Sequence[str], delay_ms: int, ports: Iterator[int]
    ) -> "DelayLine":
        assert delay_ms > 0, delay_ms
        plan = DelayPlan(delay_ms=delay_ms, ports=tuple(next(ports) for _ in to), to=tuple(to))
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
        plan = DelayPlan(
            delay_ms=stored["delay_ms"], ports=tuple(stored["ports"]), to=tuple(stored["to"])
        )
        return cls(directory, plan)

    def exists(self) -> bool:
        return _file(self.directory).exists()

    @property
    def connect(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.plan.ports)

    @property
    def _pid_file(self) -> Path:
        return self.directory / "node.pid"

    def start(self) -> None:
        """If it does not run. Raises OSError."""
        if not is_alive(ProcessId.load(self._pid_file)):
            command = python_command(_RELAY, str(self.directory))
            log = self.directory / "node.log"
            spawn(command, log=log, environment=python_environment()).save(self._pid_file)

    def stop(self) -> None:
        process = ProcessId.load(self._pid_file)
        if process is not None:
            end(process, how=signal.SIGKILL, timeout_seconds=10.0)
        self._pid_file.unlink(missing_ok=True)


def _file(directory: Path) -> Path:
    return directory / "delay.json"


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
