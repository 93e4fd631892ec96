"""Ctrl-C and SIGTERM as a question that long work asks itself, so that it can end in good order."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupt", "interrupts", "sigterm_as_ctrl_c", "uninterrupted"]


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
    """Raises KeyboardInterrupt for both, so that all that was begun is ended on the way out."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """For what must be done to its end, and soon is."""
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
