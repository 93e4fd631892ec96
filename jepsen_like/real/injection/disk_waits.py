"""How long the threads of a process stood waiting for a disk, seen by looking often.

A thread that waits for a write or a sync cannot be interrupted, and the kernel shows it as `D`. It
sees the waiting itself, not what caused it: who slows a disk down must know how long a thread waits
otherwise.

Source: proc(5), the state in /proc/PID/task/TID/stat.
"""

import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from jepsen_like.real.processes import ProcessId, is_alive, state_of

__all__ = ["DiskWatch", "Waits"]

_LOOK_SECONDS = 0.02


@dataclass(slots=True)
class Waits:
    """What was seen, look by look."""

    total_seconds: float = 0.0  # of all threads
    longest_seconds: float = 0.0  # of one thread, at a stretch
    _since: dict[str, float] = field(default_factory=dict)  # by thread, while it waits
    _last: float = 0.0

    def look(self, waiting: Collection[str], now: float) -> None:
        """`waiting` are the threads that wait now; who did not at the last look begins."""
        self.total_seconds += sum(now - self._last for each in waiting if each in self._since)
        self._since = {each: self._since.get(each, now) for each in waiting}
        self._last = now
        longest = max((now - began for began in self._since.values()), default=0.0)
        self.longest_seconds = max(self.longest_seconds, longest)


class DiskWatch:
    """Looks at a process from now on, until `stop`."""

    def __init__(self, process: ProcessId) -> None:
        self.waits = Waits()
        self._process = process
        self._enough = threading.Event()
        self._thread = threading.Thread(
            target=self._watch, name=f"disk-watch-{process.pid}", daemon=True
        )
        self._thread.start()

    def stop(self) -> Waits:
        self._enough.set()
        self._thread.join()
        return self.waits

    def _watch(self) -> None:
        while is_alive(self._process) and not self._enough.wait(_LOOK_SECONDS):
            tasks = Path(f"/proc/{self._process.pid}/task").glob("*/stat")
            waiting = {path.parent.name for path in tasks if state_of(path) == "D"}
            self.waits.look(waiting, time.monotonic())
