"""Processes: started by argument vector, known by pid and start time, ended by signal.

A pid alone is not enough to end a process: it may have been given to another one since. The start
time that the kernel keeps tells them apart.

A cluster directory is run by one `up` at a time; the claim of a dead one does not count.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self, TypeVar

from jepsen_like.installation import command
from jepsen_like.real.layout import ClusterError, write_json

__all__ = [
    "DirectoryLock",
    "ProcessId",
    "await_value",
    "end",
    "is_alive",
    "kill",
    "last_lines",
    "living",
    "run",
    "spawn",
    "spawn_forks",
    "started_at",
    "state_of",
]

_POLL_SECONDS = 0.02
_KILLED_SECONDS = 10.0
Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True)
class ProcessId:
    pid: int
    started: str  # as the operating system tells it; compared, never interpreted
    log_start: int = field(default=0, compare=False)  # where in its log file its own lines begin

    def save(self, path: Path) -> None:
        write_json(path, asdict(self))

    @classmethod
    def load(cls, path: Path) -> "ProcessId | None":
        """None if there is no such file, or not a whole one."""
        try:
            stored = json.loads(path.read_text())
            return cls(int(stored["pid"]), str(stored["started"]), int(stored.get("log_start", 0)))
        except (OSError, ValueError, KeyError, TypeError):
            return None


def started_at(pid: int) -> str | None:
    """When the process began, or None if there is none (a zombie counts as none)."""
    try:
        # The command's name, in brackets, may hold spaces: fields are counted after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return _started_at_by_ps(pid)
    except (OSError, ProcessLookupError):
        return None
    state, start_ticks = fields[0], fields[19]
    return None if state in "ZX" else start_ticks


def state_of(stat: Path) -> str | None:
    """The state of a process or thread, by its file in /proc: R, S, T, D, …; None if it is gone."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def _started_at_by_ps(pid: int) -> str | None:
    """For systems without /proc."""
    if Path("/proc/self/stat").exists():
        return None
    answer = subprocess.run(
        ["ps", "-p", str(pid), "-o", "lstart="],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip() or None


def is_alive(process: ProcessId | None) -> bool:
    return process is not None and started_at(process.pid) == process.started


def living(pid_file: Path) -> ProcessId | None:
    """The process that the file names, if it lives."""
    process = ProcessId.load(pid_file)
    return process if is_alive(process) else None


def spawn(
    arguments: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None
) -> ProcessId:
    """Start a process in a session of its own, so that a terminal's Ctrl-C does not reach it."""
    with log.open("ab") as output:
        log_start = output.tell()
        child = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=dict(environment) if environment is not None else None,
        )
    # Popen warns when it is dropped while the child runs, yet the pid file is our handle on it.
    child.returncode = 0
    return ProcessId(child.pid, started_at(child.pid) or "ended", log_start)


def spawn_forks(
    command: Sequence[str],
    nodes: Sequence[tuple[Sequence[str], Path]],
    *,
    environment: Mapping[str, str],
) -> Generator[ProcessId, None, None]:
    """Start processes of which each is a fork of `command`, by their arguments and log files.

    `command` gets each as JSON, tells their pids in the same order, and ends. Raises ClusterError
    if it tells fewer. Who stops asking, or fails, has got all that live on: the others are killed.
    """
    words = [json.dumps({"arguments": [*arguments], "log": str(log)}) for arguments, log in nodes]
    starts = [log.stat().st_size if log.exists() else 0 for _, log in nodes]
    with subprocess.Popen(
        [*command, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=dict(environment),
    ) as loaded:
        assert loaded.stdout is not None
        assert loaded.stderr is not None
        try:
            for log_start in starts:
                pid = loaded.stdout.readline()
                if not pid:
                    lines = ["nobody says why", *loaded.stderr.read().strip().splitlines()]
                    raise ClusterError(f"nodes cannot be started: {lines[-1]}")
                yield ProcessId(int(pid), started_at(int(pid)) or "ended", log_start)
        except BaseException:
            with suppress(ProcessLookupError):  # all of its session have ended, or left it
                os.killpg(loaded.pid, signal.SIGKILL)
            for pid in loaded.stdout:  # of forks that nobody else has heard of
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            raise


def end(process: ProcessId, *, how: signal.Signals, timeout_seconds: float) -> bool:
    """Signal a process and wait until it is gone. False if it is still there after the time-out."""
    if is_alive(process):
        with suppress(ProcessLookupError):  # it may have ended since
            os.kill(process.pid, how)
    is_gone = await_value(
        lambda: not is_alive(process), timeout_seconds, pause_seconds=_POLL_SECONDS
    )
    if is_gone:
        _reap(process.pid)
    return is_gone


def kill(process: ProcessId) -> bool:
    return end(process, how=signal.SIGKILL, timeout_seconds=_KILLED_SECONDS)


def _reap(pid: int) -> None:
    """Collect an ended child; others' children are not ours to collect."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def await_value(look: Callable[[], Seen], seconds: float, *, pause_seconds: float = 0.05) -> Seen:
    """Look again and again until something true is seen, or the time is up; what was seen last."""
    deadline = time.monotonic() + seconds
    while not (seen := look()) and time.monotonic() < deadline:
        time.sleep(pause_seconds)
    return seen


def last_lines(path: Path, count: int, *, start: int = 0) -> list[str]:
    """The last lines behind byte `start`, at most `count`."""
    try:
        with path.open("rb") as file:
            file.seek(max(start, path.stat().st_size - 200 * count))
            return file.read().decode(errors="replace").splitlines()[-count:]
    except FileNotFoundError:
        return []


class DirectoryLock:
    """Held by the `up` that runs a cluster; released on exit, taken over if its owner died."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "up.lock"
        self._me = ProcessId(os.getpid(), started_at(os.getpid()) or "")

    def owner(self) -> ProcessId | None:
        """The living process that holds the lock, if any."""
        return living(self._path)

    def __enter__(self) -> Self:
        directory = self._path.parent
        claim = self._path.with_suffix(f".{self._me.pid}")
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._me.save(claim)
            try:
                self._take(claim)
            finally:
                claim.unlink(missing_ok=True)
        except OSError as error:
            raise ClusterError(
                f"cannot write in {directory}: {error.strerror}; choose another --dir"
            ) from error
        return self

    def _take(self, claim: Path) -> None:
        for _ in range(3):
            try:
                os.link(claim, self._path)  # atomic: fails if somebody holds it
                return
            except FileExistsError:
                owner = self.owner()
                if owner is not None:
                    raise ClusterError(
                        f"{self._path.parent} is in use by process {owner.pid}: "
                        f"stop that one, or `{command('down', '--dir', self._path.parent)}`"
                    ) from None
                self._path.unlink(missing_ok=True)  # its owner is gone
        raise ClusterError(f"cannot lock {self._path}: several processes try at once")

    def __exit__(self, *_: object) -> None:
        if ProcessId.load(self._path) == self._me:
            self._path.unlink(missing_ok=True)


_SECONDS = 20


def run(arguments: Sequence[str], *, told: str = "") -> str:
    """Run a command with `told` on its standard input; its output. Raises ClusterError."""
    done = subprocess.run(
        arguments, input=told, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
