"""The terminal of `quorumlab top`: keys in, screens out, and everything as it was at the end.

Rich draws the lines on the terminal's second screen, and knows sizes and NO_COLOR. Keys are read
here: the terminal hands them over one by one, without showing them.
"""

import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from quorumlab.top.screen import Line, Reader

__all__ = ["is_interactive", "show"]

_LOOK_SECONDS = 0.25
_KEYS = {
    "\r": "enter", "\n": "enter", "\x1b": "escape", "\x03": "ctrl-c",
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[5~": "page up", "\x1b[6~": "page down",
    "\x1bOA": "up", "\x1bOB": "down", "\x1b[F": "end", "\x1bOF": "end",
}  # fmt: skip


def is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def show(
    lines_of: Callable[[Reader, int, int], Sequence[Line]],
    press: Callable[[Reader, str], Reader],
) -> None:
    """Until the reader is done. Each screen is drawn if it differs from the one before."""
    console, reader = Console(highlight=False), Reader()
    shown: Sequence[Line] | None = None
    with _keys_one_by_one(), Live(console=console, screen=True, auto_refresh=False) as live:
        while not reader.is_done:
            lines = lines_of(reader, console.width, console.height)
            if lines != shown:
                live.update(_text(lines), refresh=True)
                shown = lines
            for key in _keys(_LOOK_SECONDS):
                reader = press(reader, key)


def _text(lines: Sequence[Line]) -> Text:
    text = Text(no_wrap=True, overflow="crop", end="")
    for number, line in enumerate(lines):
        text.append("\n" * bool(number) + line.text, style=line.style)
    return text


@contextmanager
def _keys_one_by_one() -> Iterator[None]:
    """Ctrl-C still is SIGINT: nothing that hangs can keep the user."""
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _keys(timeout_seconds: float) -> Iterator[str]:
    """What has been pressed, after waiting for the first one."""
    ready, _, _ = select.select([sys.stdin], [], [], timeout_seconds)
    if not ready:
        return
    pressed = os.read(sys.stdin.fileno(), 1024).decode(errors="ignore")
    if not pressed:
        yield "q"  # nobody can press anything any more
    while pressed:
        known = (each for each in sorted(_KEYS, key=len, reverse=True) if pressed.startswith(each))
        taken = next(known, pressed[:1])
        pressed = pressed[len(taken) :]
        yield _KEYS.get(taken, taken)
