"""The measuring client's core: which partition is tried next, at which broker, with what outcome.

Pure. Every partition is written to in turn, at a pace that leaves the machine to the cluster; a
partition whose broker refuses is tried at another of its replicas. The client knows the replicas
and never asks for metadata: in the designs that answer from ZooKeeper that would cost a read for
each partition, and be found in the ledger.

From a `mark` on (the fault) every partition is due, and its first acknowledgement is kept. An
acknowledgement of the broker that has failed does not count: it was on its way. The time that a
partition takes no record is counted from when a record was due: the client's own pace is no gap.
"""

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wire.errors import ErrorCode

__all__ = ["NO_ANSWER", "Acknowledged", "Attempt", "Attempts", "Outcome"]

NO_ANSWER = "no answer"
_ACKNOWLEDGED_A_SECOND = 400  # in calm times
_TRIES_A_SECOND = 4000  # of those that are refused
_INTERVAL_MIN_NS = 100_000_000
_BACKOFF_MIN_NS = 20_000_000


@dataclass(frozen=True, slots=True)
class Attempt:
    partition: int
    value: int  # of the one record; no two attempts share one


@dataclass(frozen=True, slots=True)
class Outcome:
    error: ErrorCode | None  # None: no answer
    offset: int = -1


@dataclass(frozen=True, slots=True)
class Acknowledged:
    partition: int
    offset: int
    value: int


@dataclass(slots=True)
class _Tried:
    replicas: Sequence[int]
    at: int = 0  # which of them is believed to lead
    is_failing: bool = False
    is_known: bool = False  # it has taken a record
    due_ns: int = 0  # the record that is not acknowledged yet
    first_ns: int | None = None  # the first acknowledgement since the mark
    longest_ns: int = 0  # from when a record was due until it was acknowledged, since the mark

    @property
    def broker(self) -> int:
        return self.replicas[self.at]


@dataclass(slots=True)
class Attempts:
    """`placed`: of each partition its replicas, who should lead first."""

    placed: Sequence[Sequence[int]]
    acknowledged: list[Acknowledged] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    _partitions: list[_Tried] = field(default_factory=list)
    _due: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # by broker: heaps
    _failing: int = 0
    _failed_nodes: frozenset[int] = frozenset()
    _silent: set[int] = field(default_factory=set)  # brokers: nothing is tried there
    _marked_ns: int | None = None
    _next_value: int = 0
    _woken_ns: int = 0

    def __post_init__(self) -> None:
        self._partitions = [_Tried(replicas) for replicas in self.placed]
        for number, each in enumerate(self._partitions):
            self._push(each.broker, 0, number)

    # --- what to try --------------------------------------------------------------------

    def take(self, broker: int, now_ns: int, limit: int) -> list[Attempt]:
        """Takes at most `limit` that are due at `broker`. The caller must tell their outcome."""
        heap = self._due.get(broker, [])
        taken: list[Attempt] = []
        while heap and heap[0][0] <= now_ns and len(taken) < limit:
            taken.append(Attempt(heapq.heappop(heap)[1], self._next_value))
            self._next_value += 1
        return taken

    def told(
        self, broker: int, attempts: Sequence[Attempt], outcomes: Mapping[int, Outcome], now_ns: int
    ) -> None:
        """`outcomes` by partition; one that is missing had no answer."""
        for attempt in attempts:
            outcome = outcomes.get(attempt.partition, Outcome(None))
            if outcome.error is ErrorCode.NONE:
                self._succeed(broker, attempt, outcome.offset, now_ns)
            else:
                self._fail(attempt.partition, outcome, now_ns)

    def falls_silent(self, broker: int, now_ns: int) -> None:
        """It gives no answer: what is due there is tried elsewhere until it speaks again."""
        self._silent.add(broker)
        waiting, self._due[broker] = self._due.get(broker, []), []
        for due_ns, number in waiting:
            if due_ns <= now_ns:
                self._fail(number, Outcome(None), now_ns)
            else:
                self._push(broker, due_ns, number)

    def speaks(self, broker: int) -> None:
        self._silent.discard(broker)

    def mark(self, now_ns: int, failed_nodes: Sequence[int] = ()) -> None:
        """The fault happens now, to those brokers."""
        self._failed_nodes = frozenset(failed_nodes)
        self._marked_ns = now_ns
        self.errors.clear()
        for each in self._partitions:
            each.first_ns, each.longest_ns, each.due_ns = None, 0, now_ns
        for heap in self._due.values():
            heap[:] = [(now_ns, number) for _, number in heap]
            heapq.heapify(heap)

    # --- what is known ------------------------------------------------------------------

    @property
    def written(self) -> int:
        """Counts the partitions that have taken a record since the mark, or at all without one."""
        if self._marked_ns is None:
            return sum(each.is_known for each in self._partitions)
        return sum(each.first_ns is not None for each in self._partitions)

    def leader(self, partition: int) -> int:
        """The broker that is believed to lead; it does if the last attempt was acknowledged."""
        return self._partitions[partition].broker

    def led_by(self, broker: int) -> list[int]:
        return [number for number, each in enumerate(self._partitions) if each.broker == broker]

    def silences_ms(self, partitions: Sequence[int]) -> list[float | None]:
        """Returns the times from the mark to the first acknowledgement; None: there was none."""
        assert self._marked_ns is not None
        return [
            None if first_ns is None else round((first_ns - self._marked_ns) / 1e6, 1)
            for first_ns in (self._partitions[number].first_ns for number in partitions)
        ]

    def longest_ms(self, now_ns: int) -> list[float]:
        """Returns for each partition the longest time that a record was due and unacknowledged."""
        return [
            round(max(each.longest_ns, now_ns - each.due_ns) / 1e6, 1) for each in self._partitions
        ]

    # --- outcomes -----------------------------------------------------------------------

    def _succeed(self, broker: int, attempt: Attempt, offset: int, now_ns: int) -> None:
        each = self._partitions[attempt.partition]
        self.acknowledged.append(Acknowledged(attempt.partition, offset, attempt.value))
        if self._marked_ns is not None and broker not in self._failed_nodes:
            each.longest_ns = max(each.longest_ns, now_ns - each.due_ns)
            each.first_ns = each.first_ns or now_ns
        each.is_known = True
        if each.is_failing:
            each.is_failing = False
            self._failing -= 1
            self._wake(now_ns)
        interval_ns = len(self._partitions) * 10**9 // _ACKNOWLEDGED_A_SECOND
        each.due_ns = now_ns + max(_INTERVAL_MIN_NS, interval_ns)
        self._push(each.broker, each.due_ns, attempt.partition)

    def _fail(self, partition: int, outcome: Outcome, now_ns: int) -> None:
        each = self._partitions[partition]
        name = NO_ANSWER if outcome.error is None else ErrorCode(outcome.error).name
        self.errors[name] += 1
        if not each.is_failing:
            each.is_failing = True
            self._failing += 1
        if outcome.error is not ErrorCode.REQUEST_TIMED_OUT:  # that one does lead
            self._turn(each)
        self._push(each.broker, now_ns + self._backoff_ns, partition)

    def _turn(self, each: _Tried) -> None:
        """Turns to the next replica whose broker speaks, or simply to the next."""
        places = [
            (each.at + step) % len(each.replicas) for step in range(1, len(each.replicas) + 1)
        ]
        speaking = (place for place in places if each.replicas[place] not in self._silent)
        each.at = next(speaking, places[0])

    @property
    def _backoff_ns(self) -> int:
        return max(_BACKOFF_MIN_NS, self._failing * 10**9 // _TRIES_A_SECOND)

    def _wake(self, now_ns: int) -> None:
        """Tries every partition again as soon as one takes a record: the others may, too."""
        if now_ns - self._woken_ns < self._backoff_ns:
            return
        self._woken_ns = now_ns
        for heap in self._due.values():
            heap[:] = [
                (min(due_ns, now_ns) if self._partitions[number].is_failing else due_ns, number)
                for due_ns, number in heap
            ]
            heapq.heapify(heap)

    def _push(self, broker: int, due_ns: int, number: int) -> None:
        heapq.heappush(self._due.setdefault(broker, []), (due_ns, number))
