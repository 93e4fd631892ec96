"""A node that a signal makes die at an effect, or hang in a sync.

    python -m tests.integration.breakable_node --config FILE ...    as `quorumlab node`

    SIGUSR1    it dies (SIGKILL) at one of its next `MOMENTS` moments: before or after a write, a
               sync or a message; `BREAKABLE_SEED` says at which
    SIGUSR2    its next inline sync hangs for `HANG_SECONDS`, so that all of the node stops; later
               signals make any next sync hang

The calls are wrapped before the node begins; nodes that ship have no such places. Syncs reach no
medium, since no power fails here. The clock that times them advances by hangs alone, so that
whether they are inline does not depend on what else the machine does. A line on stdout says what
happens and when, on the clock that all processes of a machine share.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

from quorum.core.storage import StorageEvent
from quorum.log.files import file_storage
from quorum.log.files.disk import Disk
from quorum.log.files.file_storage import FileStorage
from quorum.node.driver import Driver
from quorumlab.cli import main
from wire.tcp_server import Server

__all__ = ["DIES", "HANGS", "HANG_SECONDS", "MOMENTS", "SEED"]

SEED = "BREAKABLE_SEED"  # an environment variable
MOMENTS = 60  # those of a few commits
HANG_SECONDS = 5.0
DIES, HANGS = "breakable: dies", "breakable: a sync hangs"  # how its lines begin


def say(what: str) -> None:
    os.write(sys.stdout.fileno(), f"{what} at {time.monotonic():.3f}\n".encode())


class Breakable:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._moments_left = 0  # 0: it does not die
        self._lock = threading.Lock()
        self._hangs_next = False
        self.seconds_hung = 0.0

    def die_soon(self, *_signal: object) -> None:
        self._moments_left = self._random.randint(1, MOMENTS)

    def hang_next(self, *_signal: object) -> None:
        self._hangs_next = True

    def passes(self, moment: str) -> None:
        with self._lock:
            if self._moments_left == 0:
                return
            self._moments_left -= 1
            if self._moments_left == 0:
                say(f"{DIES} {moment}")
                os.kill(os.getpid(), signal.SIGKILL)

    def hang(self) -> None:
        """Hang in this sync, if a signal asked for it and the sync is of the kind that may."""
        is_inline = threading.current_thread() is threading.main_thread()
        if self._hangs_next and (is_inline or self.seconds_hung > 0):
            self._hangs_next = False
            say(f"{HANGS} {'inline' if is_inline else 'in a thread'}")
            time.sleep(HANG_SECONDS)
            self.seconds_hung += HANG_SECONDS

    def around(self, what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: object) -> Any:
            self.passes(f"before {what}")
            result = call(*arguments)
            self.passes(f"after {what}")
            return result

        return called


class BreakableSystem:
    """Stands for module `os` in `quorum.log.files.disk`."""

    def __init__(self, breakable: Breakable) -> None:
        self.pwrite = breakable.around("a write", os.pwrite)
        self.fsync = breakable.around("a sync", lambda _fd: None)
        self.rename = breakable.around("a rename", os.rename)
        self.fdatasync = breakable.around("a sync", lambda _fd: breakable.hang())

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def wrap(breakable: Breakable) -> None:
    """Put crash points around all writes, syncs and messages of this process."""
    take_events = FileStorage.take_events

    def hear(storage: FileStorage) -> list[StorageEvent]:
        events = take_events(storage)
        if events:
            breakable.passes("before the core hears of it")
        return events

    clock = SimpleNamespace(perf_counter=lambda: breakable.seconds_hung)
    disk = partial(Disk, system=BreakableSystem(breakable))
    replaced: list[tuple[object, str, object]] = [
        (file_storage, "Disk", disk),
        (file_storage, "time", clock),
        (FileStorage, "take_events", hear),
        (Driver, "_send", breakable.around("a request", Driver._send)),
        (Server, "flush", breakable.around("answers", Server.flush)),
    ]
    for holder, name, replacement in replaced:
        setattr(holder, name, replacement)


def run(arguments: Sequence[str]) -> int:
    breakable = Breakable(Random(os.environ[SEED]))
    wrap(breakable)
    signal.signal(signal.SIGUSR1, breakable.die_soon)
    signal.signal(signal.SIGUSR2, breakable.hang_next)
    return main(["node", *arguments])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
