"""The common parts of the verbs of `inspect`: exit codes, progress, and how an address is asked."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate, islice
from pathlib import Path
from types import SimpleNamespace

from jepsen_like.real.client_settings import ClientSettings
from quorumlab.client_properties import given_settings
from quorumlab.inspection.target import Target
from quorumlab.output import Progress

__all__ = ["DAMAGED", "VIOLATED", "say_lines", "scanning", "target_settings"]

DAMAGED = 1
VIOLATED = 4
_INTERVAL_SECONDS = 0.2
_LINES_AT_ONCE = 1000
_MEBIBYTE = 1 << 20


def target_settings(args: SimpleNamespace) -> ClientSettings:
    """How an address is spoken to; files need none of it."""
    return given_settings(args.command_config)


def say_lines(lines: Iterable[str]) -> None:
    """Many lines: a reader waits for none of them alone."""
    rest = iter(lines)
    while piece := list(islice(rest, _LINES_AT_ONCE)):
        sys.stdout.write("\n".join(piece) + "\n")
    sys.stdout.flush()


@contextmanager
def scanning(target: Target, *, prints: bool = False) -> Iterator[Target]:
    """The target, with progress on stderr; not where what is `printed` goes to a terminal, too."""
    if prints and sys.stdout.isatty():
        yield target
        return
    sizes = [path.stat().st_size for path in target.files]
    before = dict(zip(target.files, accumulate(sizes, initial=0), strict=False))
    total = sum(sizes)
    shown = Progress()
    following = time.monotonic() + _INTERVAL_SECONDS

    def reading(path: Path, position: int) -> None:
        """Says how much of all files was read, a few times a second."""
        nonlocal following
        now = time.monotonic()
        if now >= following:
            following = now + _INTERVAL_SECONDS
            percent = 100 * (before.get(path, 0) + position) // max(total, 1)
            shown(f"{percent} % of {total // _MEBIBYTE} MiB read")

    try:
        yield replace(target, progress=reading)
    finally:
        shown.done()
