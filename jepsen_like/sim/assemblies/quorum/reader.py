"""Asks the leader again and again to read what is committed, as a client would.

Source: Raft thesis 6.4.
"""

from collections.abc import Callable
from random import Random

from quorum.core.confirmed_reads import ConfirmedReads, ConfirmingLog
from quorum.core.effects import Request, earliest

__all__ = ["Answer", "Reader"]

Answer = Callable[[int], None]  # where all ends that the answer is read from

_TIMEOUT_MS = 5_000


class Reader:
    """Belongs to one process. `asked` is told of every question, and says who hears the answer."""

    def __init__(
        self, *, log: ConfirmingLog, random: Random, interval_ms: int, asked: Callable[[], Answer]
    ) -> None:
        self.reads = 0  # that were answered
        self._random = random
        self._interval_ms = interval_ms  # on average; 0: it never asks
        self._asked = asked
        self._waiting = ConfirmedReads(log)
        self._due_ms: int | None = None

    def lead(self, now_ms: int) -> None:
        if self._interval_ms:
            self._due_ms = now_ms + self._random.randint(1, 2 * self._interval_ms)

    def resign(self) -> None:
        self._due_ms = None
        self._waiting.clear()

    def tick(self, applied_offset: int, now_ms: int) -> None:
        self.answer(applied_offset)
        self._waiting.take_expired(now_ms)
        if self._due_ms is not None and now_ms >= self._due_ms:
            self.ask(now_ms)
            self.lead(now_ms)

    def ask(self, now_ms: int) -> None:
        request = Request(token=0, body=self._asked())
        self._waiting.park(request, now_ms, timeout_ms=_TIMEOUT_MS)

    def answer(self, applied_offset: int) -> None:
        """All that is ready is answered from what has been applied."""
        for request in self._waiting.take_ready(applied_offset):
            self.reads += 1
            assert callable(request.body), request
            request.body(applied_offset)

    def deadline_ms(self, applied_offset: int) -> int | None:
        return earliest(self._due_ms, self._waiting.deadline_ms(applied_offset))
