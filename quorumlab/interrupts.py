"""Ctrl-C and SIGTERM: long work asks whether one came, and child programs are ended with us."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

__all__ = ["Interrupt", "child", "interrupts", "sigterm_as_ctrl_c", "uninterrupted"]

_CHILD_SECONDS = 60.0  # to end in good order: a chaos run heals its faults and stops its nodes


class Interrupt:
    """Whether SIGINT or SIGTERM has come. A second one ends the program at once."""

    def __init__(self) -> None:
        self.happened = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.happened:
            raise KeyboardInterrupt
        self.happened = True


@contextmanager
def interrupts() -> Iterator[Interrupt]:
    interrupt = Interrupt()
    with _heard_by(interrupt):
        yield interrupt


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt, too: what was begun is ended on the way out."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Both signals are ignored: the work within is short and must come to its end."""
    with _heard_by(signal.SIG_IGN):
        yield


@contextmanager
def _heard_by(handler: Interrupt | signal.Handlers) -> Iterator[None]:
    before = {which: signal.signal(which, handler) for which in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for which, earlier in before.items():
            signal.signal(which, earlier)


@contextmanager
def child(
    command: Sequence[str],
    *,
    output: IO[str] | int | None = None,
    errors: int | None = None,
    directory: Path | None = None,
) -> "Iterator[subprocess.Popen[str]]":
    """Run a program of ours to its end: on leaving, its exit code is known.

    An interrupt ends it by SIGTERM. It has a session of its own, so that a terminal's Ctrl-C comes
    to us alone and the program is told once.
    """
    import subprocess  # the list of verbs does not pay for it

    from jepsen_like.python_children import python_environment

    with sigterm_as_ctrl_c():
        process = subprocess.Popen(  # noqa: S603  # our own programs
            command,
            stdout=output,
            stderr=errors,
            cwd=directory,
            env=python_environment(),
            text=True,
            start_new_session=True,
        )
        try:
            yield process
            process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(_CHILD_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            if process.stdout is not None:
                process.stdout.close()
