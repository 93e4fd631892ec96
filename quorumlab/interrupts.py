"""Ctrl-C and SIGTERM as a question that long work asks itself, so that it can end in good order."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupt", "interrupts"]


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
    before = {which: signal.signal(which, interrupt) for which in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
