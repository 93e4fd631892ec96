"""Which processes belong to what, and the end of all of them at once, as when a machine dies."""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["in_session", "kill", "python_workers", "running_in", "told_of"]

_SESSION = 3  # the place of it behind the name, in /proc/PID/stat


def in_session(leader: int) -> list[int]:
    """A program that was started with a session of its own, and all that it has started."""
    return [pid for pid in _all() if _stat(pid)[_SESSION : _SESSION + 1] == [str(leader)]]


def running_in(directory: Path) -> list[int]:
    """Executors and their Pythons run in a directory of their worker."""
    found = []
    for pid in _all():
        with suppress(OSError):
            if Path(f"/proc/{pid}/cwd").readlink().is_relative_to(directory):
                found.append(pid)
    return found


def told_of(directory: Path) -> list[int]:
    """Those that were started with it as an argument, as the worker itself."""
    return [pid for pid in _all() if os.fsencode(directory) in _command(pid).split(b"\0")]


def python_workers(among: Iterable[int]) -> list[int]:
    """Those that work, not the process that forks them."""
    daemons = {pid for pid in among if b"pyspark.daemon" in _command(pid)}
    return [pid for pid in daemons if int((_stat(pid) or "00")[1]) in daemons]


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _all() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").glob("[0-9]*"))


def _stat(pid: int) -> list[str]:
    """State, parent, group, session, …; nothing if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
