"""Reads that only a sure leader may answer, from all that is committed: linearizable ones.

One waits until its node is known to have led after it came, and until all that was committed when
it came has been applied. Who leads (`Application.lead`) has committed in its own epoch, so its high
watermark says what that is.

Decides nothing about the answer. The application says how far it has applied, answers what is ready
in its `tick` and as it applies, and refuses the others when it resigns or when their time is up.

Source: Raft thesis 6.4, steps 1 to 4.
"""

from dataclasses import dataclass
from typing import Protocol

from quorum.core.application import MetadataLog
from quorum.core.effects import Request
from quorum.core.parking import Parking

__all__ = ["ConfirmedReads", "ConfirmingLog"]


class ConfirmingLog(MetadataLog, Protocol):
    """An engine that can be asked whether it still leads. Not every one can, nor has to."""

    def confirm_leadership(self, now_ms: int) -> int:
        """Ask as leader whether this node still leads; returns the number of the question.

        It does, or did when it was asked, once `confirmed_through` has reached that number. It may
        never: an application waits as long as it likes, or until `resign`.
        """
        ...

    @property
    def confirmed_through(self) -> int:
        """The last question of this epoch that is answered, with all before it."""
        ...


@dataclass(frozen=True, slots=True)
class _Waiting:
    request: Request
    question: int  # whether this node leads
    offset: int  # all before it was committed when the request came


class ConfirmedReads:
    def __init__(self, log: ConfirmingLog) -> None:
        self._log = log
        self._parking: Parking[_Waiting] = Parking()

    def park(self, request: Request, now_ms: int, *, timeout_ms: int) -> bool:
        """As leader. False: too many wait, it must be refused."""
        if self._parking.is_full():
            return False
        offset = self._log.high_watermark
        assert offset is not None, "leads, and has committed nothing in its epoch"
        question = self._log.confirm_leadership(now_ms)
        self._parking.park(_Waiting(request, question, offset), now_ms + timeout_ms)
        return True

    def take_ready(self, applied_offset: int) -> list[Request]:
        """Those that may be answered from what has been applied, all before `applied_offset`."""
        ready = self._parking.release(lambda waiting: self._is_ready(waiting, applied_offset))
        return [waiting.request for waiting in ready]

    def take_expired(self, now_ms: int) -> list[Request]:
        return [waiting.request for waiting in self._parking.expired(now_ms)]

    def clear(self) -> list[Request]:
        """All that wait: this node leads no longer."""
        return [waiting.request for waiting in self._parking.clear()]

    def deadline_ms(self, applied_offset: int) -> int | None:
        """0 where something is ready: it is due at once."""
        if not self._parking.waiting:
            return None
        if any(self._is_ready(waiting, applied_offset) for _, waiting in self._parking.waiting):
            return 0
        return self._parking.due_ms

    def _is_ready(self, waiting: _Waiting, applied_offset: int) -> bool:
        is_confirmed = waiting.question <= self._log.confirmed_through
        return is_confirmed and waiting.offset <= applied_offset
