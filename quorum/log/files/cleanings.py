"""Which log is cleaned next: one at a time, the one with the largest share of dirty bytes first.

A broker asks for a log now and then (`Clean`), in the order of its other effects. What is not due
is answered at once. A round works in a thread of its own, and only to put a cleaned segment into
the log it needs the log for itself (`Swap`). Whatever rewrites or shortens the log ends the round.

What cannot be read ends the cleaning of that log until the node starts again: nothing is lost, and
the log only grows.

Source: Kafka's LogCleanerManager (grabFilthiestCompactedLog, markPartitionUncleanable).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from quorum.core.cleaning import Clean, Cleaned
from quorum.core.log_settings import CleaningOrder
from quorum.core.storage import Say, StorageError
from quorum.log.cleaning_choice import Choice, NotDue
from quorum.log.files.cleaning_round import Round, choice_for
from quorum.log.files.jobs import Jobs, Outcome, Pool, Workers
from quorum.log.files.log_queue import LogQueue, Swap
from quorum.log.files.segments import SegmentedLog

__all__ = ["Cleanings"]


class CleanedLogs(Protocol):
    """What is done to files, and noted beside them."""

    def cleaned_to(self, log: str) -> int: ...

    def round_of(
        self, segments: SegmentedLog, choice: Choice, order: CleaningOrder, *, workers: Workers
    ) -> Round: ...

    def note_cleaned(self, log: str, offset: int) -> None: ...


@dataclass(frozen=True, slots=True)
class _Wanted:
    queue: LogQueue
    effect: Clean
    choice: Choice


class Cleanings:
    """Belongs to the driver's thread."""

    def __init__(
        self,
        logs: CleanedLogs,
        jobs: Jobs,
        workers: Workers,
        *,
        say: Say,
        report: Callable[[Cleaned], None],
        advance: Callable[[LogQueue], None],
    ) -> None:
        """`report` takes the events; `advance` begins what waits in a queue."""
        self._logs = logs
        self._jobs = jobs
        self._workers = workers
        self._say = say
        self._report = report
        self._advance = advance
        self._wanted: dict[str, _Wanted] = {}
        self._running: tuple[_Wanted, Round] | None = None
        self._is_closed = False

    def ask(self, queue: LogQueue, effect: Clean) -> None:
        """Its turn among the effects on the log has come."""
        choice = self._choose(queue, effect)
        if self._is_closed or isinstance(choice, NotDue) or queue.log in self._wanted:
            self._answer(queue, effect, choice)
            return
        self._wanted[queue.log] = _Wanted(queue, effect, choice)
        self._begin()

    def forget(self, queue: LogQueue) -> None:
        """The log is being rewritten: what was asked before does not count any more."""
        wanted = self._wanted.pop(queue.log, None)
        if wanted is not None:
            self._answer(queue, wanted.effect, NotDue(wanted.effect.order.now_ms))

    def abandon(self) -> None:
        """The process ends."""
        self._is_closed = True
        if self._running is not None:
            self._running[1].cancel()

    def _choose(self, queue: LogQueue, effect: Clean) -> Choice | NotDue:
        if queue.is_uncleanable or queue.cleaning is not None:
            return NotDue(None)
        assert queue.segments is not None, queue.log
        cleaned_to = self._logs.cleaned_to(queue.log)
        try:
            return choice_for(queue.segments, effect.order, cleaned_to=cleaned_to)
        except StorageError as error:
            self._mark_uncleanable(queue, error)
            return NotDue(None)

    def _begin(self) -> None:
        while self._running is None and self._wanted and not self._is_closed:
            log = max(self._wanted, key=lambda each: self._wanted[each].choice.dirty_ratio)
            wanted = self._wanted.pop(log)
            queue, effect = wanted.queue, wanted.effect
            if queue.segments is None or queue.alone is not None or queue.has_failed:
                self._answer(queue, effect, NotDue(effect.order.now_ms))
                continue
            choice = self._choose(queue, effect)  # meanwhile it may have been trimmed
            if isinstance(choice, NotDue):
                self._answer(queue, effect, choice)
                continue
            self._start(wanted, queue.segments, choice)

    def _start(self, wanted: _Wanted, segments: SegmentedLog, choice: Choice) -> None:
        queue, effect = wanted.queue, wanted.effect
        try:
            round_ = self._logs.round_of(segments, choice, effect.order, workers=self._workers)
        except StorageError as error:
            self._mark_uncleanable(queue, error)
            self._answer(queue, effect, NotDue(None))
            return
        queue.cleaning = round_
        self._running = wanted, round_
        self._clean_next()

    # --- a round ----------------------------------------------------------------------------

    def _clean_next(self) -> None:
        assert self._running is not None
        self._jobs.submit(Pool.CLEANING, self._running[1].clean_next, self._cleaned)

    def _cleaned(self, outcome: Outcome) -> None:
        """A group was rewritten, or there was nothing to rewrite."""
        assert self._running is not None
        wanted, round_ = self._running
        queue = wanted.queue
        try:
            cleaned = outcome.result()
        except StorageError as error:
            self._mark_uncleanable(queue, error)
            self._end()
            return
        if cleaned is None or queue.has_failed or round_.is_cancelled:
            round_.replaced += [] if cleaned is None else [cleaned]
            self._go_on()
            return
        queue.waiting.append(
            Swap(log=queue.log, token=queue.last_token, round=round_, cleaned=cleaned)
        )
        self._advance(queue)

    def swapped(self, swap: Swap) -> None:
        """The log has the cleaned segment, or has failed."""
        if self._running is not None and self._running[1] is swap.round:
            self._go_on()

    def _go_on(self) -> None:
        assert self._running is not None
        wanted, round_ = self._running
        if wanted.queue.has_failed or round_.is_cancelled:
            self._end()
        elif round_.groups:
            self._clean_next()
        else:
            self._jobs.submit(Pool.CLEANING, self._note, self._noted)

    def _note(self) -> None:
        """In a thread: up to there the log is clean."""
        assert self._running is not None
        wanted, round_ = self._running
        round_.remove_replaced()
        self._logs.note_cleaned(wanted.queue.log, round_.keys.end_offset)

    def _noted(self, outcome: Outcome) -> None:
        assert self._running is not None
        try:
            outcome.result()
        except StorageError as error:
            self._mark_uncleanable(self._running[0].queue, error)
        self._end()

    def _mark_uncleanable(self, queue: LogQueue, error: StorageError) -> None:
        queue.is_uncleanable = True
        if not queue.has_failed:
            self._say(f"{queue.log} is not compacted any more until the next start: {error}")

    def _end(self) -> None:
        assert self._running is not None
        wanted, round_ = self._running
        queue = wanted.queue
        queue.doomed += round_.replaced  # of a round that was given up
        queue.cleaning = self._running = None
        self._answer(queue, wanted.effect, NotDue(wanted.effect.order.now_ms))
        if not queue.has_failed:
            self._advance(queue)
        self._begin()

    def _answer(self, queue: LogQueue, effect: Clean, choice: Choice | NotDue) -> None:
        size_bytes = None if queue.segments is None else queue.segments.size_bytes
        next_ms = choice.next_ms if isinstance(choice, NotDue) else effect.order.now_ms
        self._report(
            Cleaned(token=effect.token, log=queue.log, size_bytes=size_bytes, next_ms=next_ms)
        )
