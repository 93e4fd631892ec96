"""Ctrl-C and SIGTERM: long work asks whether one came."""

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
