"""Asks, while its node leads, to read what is committed; R-RI: nothing is missing in the answer.

What an answer must hold is what had been committed anywhere in the quorum when the read was asked
for. Source: Raft thesis 6.4.
"""

from collections.abc import Callable
from random import Random

from jepsen_like.sim.violation import Violation
from quorum.application import MetadataLog
from quorum.confirmed_reads import ConfirmedReads
from quorum.effects import Request, earliest

__all__ = ["Reader"]

_TIMEOUT_MS = 5_000


class Reader:
    """One process's; `committed` says where all ends that is committed, whoever knows it."""

    def __init__(
        self, *, log: MetadataLog, random: Random, interval_ms: int, committed: Callable[[], int]
    ) -> None:
        self.reads = 0  # that were answered
        self._log = log
        self._random = random
        self._interval_ms = interval_ms  # on average; 0: it never asks
        self._committed = committed
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
        request = Request(token=0, body=self._committed())
        self._waiting.park(request, now_ms, timeout_ms=_TIMEOUT_MS)

    def answer(self, applied_offset: int) -> None:
        """All that is ready is answered from what has been applied."""
        for request in self._waiting.take_ready(applied_offset):
            self.reads += 1
            assert isinstance(request.body, int), request
            if applied_offset < request.body:
                raise Violation(
                    "R-RI",
                    f"node {self._log.node_id} in epoch {self._log.leader.epoch} answers with what"
                    f" ends at {applied_offset}: {request.body} was committed when it was asked",
                )

    def deadline_ms(self, applied_offset: int) -> int | None:
        return earliest(self._due_ms, self._waiting.deadline_ms(applied_offset))
