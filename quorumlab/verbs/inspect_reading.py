"""What the verbs of `inspect` share: exit codes, and how far the reading is, on a terminal."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

from quorumlab.inspection.target import Target
from quorumlab.output import Progress

__all__ = ["DAMAGED", "VIOLATED", "say_lines", "scanning"]

DAMAGED = 1
VIOLATED = 4
_INTERVAL_SECONDS = 0.2
_LINES_AT_ONCE = 1000
_MEBIBYTE = 1 << 20


def say_lines(lines: Iterable[str]) -> None:
    """Many lines: a reader waits for none of them alone."""
    rest = iter(lines)
    while piece := list(islice(rest, _LINES_AT_ONCE)):
        sys.stdout.write("\n".join(piece) + "\n")
    sys.stdout.flush()


@contextmanager
def scanning(target: Target, *, prints: bool = False) -> Iterator[Target]:
    """The target, with progress on stderr; not where what is `printed` goes to a terminal, too."""
    shown = Progress()
    if prints and sys.stdout.isatty():
        yield target
        return
    reading = _Reading(target, shown)
    try:
        yield replace(target, progress=reading)
    finally:
        shown.done()


class _Reading:
    """Says how much of all files was read, a few times a second."""

    def __init__(self, target: Target, shown: Progress) -> None:
        self._shown = shown
        self._before: dict[Path, int] = {}  # bytes of the files before it
        self._total = 0
        for path in target.files:
            self._before[path] = self._total
            self._total += path.stat().st_size
        self._next = time.monotonic() + _INTERVAL_SECONDS

    def __call__(self, path: Path, position: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _INTERVAL_SECONDS
        read = self._before.get(path, 0) + position
        percent = 100 * read // max(self._total, 1)
        self._shown(f"{percent} % of {self._total // _MEBIBYTE} MiB read")
