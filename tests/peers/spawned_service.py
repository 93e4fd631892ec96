"""What the tests of kafka-python start brokers with, in the place of the file its sdist lacks.

Copied as `test/service.py` beside the tests. A broker is ready when its port takes connections:
whose it is makes no difference then.
"""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["ExternalService", "SpawnedService"]

_STOP_SECONDS = 30.0
_LISTENER = re.compile(r"^listeners=\w+://([^:]+):(\d+)", re.MULTILINE)


class ExternalService:
    """A broker that somebody else started."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

    def open(self) -> None:
        """There is nothing to start."""

    def close(self) -> None:
        """There is nothing to stop."""


class SpawnedService:
    """A process whose last argument is the server.properties it runs from."""

    def __init__(self, args: Sequence[str], env: Mapping[str, str]) -> None:
        self._args = args
        self._env = env
        self._properties = Path(args[-1])
        self._output = self._properties.with_name("output.txt")

    def start(self) -> None:
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._args, env=self._env, stdout=output, stderr=subprocess.STDOUT
            )

    def wait_for(self, pattern: str, timeout: float = 30.0) -> bool:
        found = _LISTENER.search(self._properties.read_text())
        assert found, self._properties
        deadline = time.monotonic() + max(timeout, 30.0)
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                socket.create_connection((found[1], int(found[2])), timeout=1.0).close()
            except OSError:
                time.sleep(0.1)
            else:
                return True
        return False

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def dump_logs(self) -> None:
        print(self._output.read_text(errors="replace")[-4000:])
