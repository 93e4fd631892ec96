"""A long way to servers that are near: their answers arrive some milliseconds later.

    line = DelayLine.create(DIR, to=["127.0.0.1:2181"], delay_ms=4, ports=free_ports())
    line.start(); ...; line.stop()         # line.connect is where to connect

A delay line is a process of its own (`delay_relay.py`), known by its pid
file, so that any later process can end it; it ends by itself when its directory is gone. Requests
pass at once. Each answer waits for the whole delay, and none waits for another: questions that are
asked in a row cost the delay each, pipelined ones cost it once.

    DIR/delay.json            the ports, and the server behind each
    DIR/node.pid, node.log    its process, and what it printed
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import convert

from jepsen_like.python_children import python_command, python_environment
from jepsen_like.real.layout import HOST
from jepsen_like.real.processes import ProcessId, kill, living, spawn

__all__ = ["DelayLine"]

_RELAY = "jepsen_like.real.delay_relay"


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayLine:
    directory: Path
    delay_ms: int
    ports: tuple[int, ...]
    to: tuple[str, ...]  # host:port, for each of the ports

    @classmethod
    def create(
        cls, directory: Path, *, to: Sequence[str], delay_ms: int, ports: Iterator[int]
    ) -> "DelayLine":
        assert delay_ms > 0, delay_ms
        own = tuple(next(ports) for _ in to)
        line = cls(directory=directory, delay_ms=delay_ms, ports=own, to=tuple(to))
        directory.mkdir(parents=True, exist_ok=True)
        stored = {"delay_ms": delay_ms, "ports": line.ports, "to": line.to}
        _file(directory).write_text(json.dumps(stored))
        return line

    @classmethod
    def open(cls, directory: Path) -> "DelayLine | None":
        """None if there is none."""
        try:
            stored = json.loads(_file(directory).read_text())
        except FileNotFoundError:
            return None
        return convert(stored | {"directory": directory}, cls)

    def exists(self) -> bool:
        return _file(self.directory).exists()

    @property
    def connect(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.ports)

    @property
    def _pid_file(self) -> Path:
        return self.directory / "node.pid"

    def start(self) -> None:
        """If it does not run. Raises OSError."""
        if living(self._pid_file) is None:
            command = python_command(_RELAY, str(self.directory))
            log = self.directory / "node.log"
            spawn(command, log=log, environment=python_environment()).save(self._pid_file)

    def stop(self) -> None:
        process = ProcessId.load(self._pid_file)
        if process is not None:
            kill(process)
        self._pid_file.unlink(missing_ok=True)


def _file(directory: Path) -> Path:
    return directory / "delay.json"
