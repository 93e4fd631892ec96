"""Answers on their way to a socket that may be slow."""

from collections import deque
from collections.abc import Sequence
from typing import Protocol

__all__ = ["SLICE_BYTES", "Output"]

SLICE_BYTES = 256 << 10  # of a large piece, handed over at a time; smaller ones go together


class _Transport(Protocol):
    """The part of `asyncio.Transport` that is used."""

    def write(self, data: bytes | memoryview, /) -> None: ...


class Output:
    """Hands answers to a socket that may be slow in slices, and never copies them whole.

    A transport copies what its socket does not take at once. An answer of many megabytes to thirty
    followers would be copied thirty times; here it waits as one object until there is room for the
    next slice. `pause` and `resume` are asyncio's `pause_writing` and `resume_writing`.
    """

    __slots__ = ("_transport", "_waiting", "is_full")

    def __init__(self, transport: _Transport) -> None:
        self._transport = transport
        self._waiting: deque[memoryview] = deque()
        # Is there more than the transport wants to keep? Only then does anything wait here.
        self.is_full = False

    def write(self, pieces: Sequence[bytes]) -> None:
        if not self._waiting and sum(map(len, pieces)) <= SLICE_BYTES:
            self._transport.write(b"".join(pieces))
            return
        self._waiting.extend(map(memoryview, pieces))
        self._hand_over()

    def pause(self) -> None:
        self.is_full = True

    def resume(self) -> None:
        self.is_full = False
        self._hand_over()

    def _hand_over(self) -> None:
        while self._waiting and not self.is_full:
            piece = self._waiting.popleft()
            if len(piece) > SLICE_BYTES:
                self._waiting.appendleft(piece[SLICE_BYTES:])
                piece = piece[:SLICE_BYTES]
            self._transport.write(piece)
