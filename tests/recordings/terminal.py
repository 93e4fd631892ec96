"""Command lines on a real terminal of 80 by 24, and what it is sent, with the times."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.recordings.cast import COLUMNS, PROMPT, ROWS, Event

__all__ = ["Act", "Place", "type_line"]

_TYPED_SECONDS = 0.8  # between the prompt and what the command says
_READ_BYTES = 65536


class Act(NamedTuple):
    """Something that happens while a command runs."""

    seconds: float  # since it began
    keys: str = ""  # pressed
    line: str = ""  # for a shell elsewhere


class Place(NamedTuple):
    directory: Path  # the working directory
    environment: Mapping[str, str]

    def run(self, line: str) -> None:
        """Without a terminal; raises CalledProcessError."""
        subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )


def type_line(
    place: Place, line: str, acts: Sequence[Act] = (), *, starts_at: float = 0.0
) -> list[Event]:
    """The prompt, the line, and all that comes of it. `acts` are in the order of their times."""
    events = [(starts_at, f"{PROMPT}{line}\r\n")]
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    with subprocess.Popen(
        ["/bin/sh", "-c", line],
        stdin=side,
        stdout=side,
        stderr=side,
        cwd=place.directory,
        env=place.environment,
        start_new_session=True,
    ) as process:
        os.close(side)
        try:
            events += _heard(place, main, list(acts), starts_at + _TYPED_SECONDS)
        finally:
            os.close(main)
            with suppress(ProcessLookupError):
                process.kill()
    return events


def _heard(place: Place, main: int, acts: list[Act], starts_at: float) -> list[Event]:
    events: list[Event] = []
    elsewhere: list[subprocess.Popen[bytes]] = []
    began = time.monotonic()
    rest = b""
    while True:
        passed = time.monotonic() - began
        while acts and acts[0].seconds <= passed:
            elsewhere += _done(place, main, acts.pop(0))
        ready, _, _ = select.select([main], [], [], 0.05)
        if not ready:
            continue
        try:
            read = os.read(main, _READ_BYTES)
        except OSError:  # how Linux says that nobody writes any more
            break
        said, rest = _whole(rest + read)
        events.append((starts_at + time.monotonic() - began, said))
    for process in elsewhere:
        process.wait()
    return events


def _done(place: Place, main: int, act: Act) -> list[subprocess.Popen[bytes]]:
    os.write(main, act.keys.encode())
    if not act.line:
        return []
    process = subprocess.Popen(
        ["/bin/sh", "-c", act.line],
        cwd=place.directory,
        env=place.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    return [process]


def _whole(read: bytes) -> tuple[str, bytes]:
    """What can be decoded, and the bytes of a character that is not all there."""
    for cut in range(4):
        with suppress(UnicodeDecodeError):
            return read[: len(read) - cut].decode(), read[len(read) - cut :]
    return read.decode(errors="replace"), b""
