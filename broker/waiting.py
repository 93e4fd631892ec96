"""Requests wait until a partition has reached an offset, or until their time is up.

    - `Deadlines`: no request waits for ever; when its time is up it is answered with what there is;
    - `OffsetWaiters`: by partition and by the offset that they wait for. Producers and group
      coordinators wait for the high watermark, DeleteRecords for the start of the last live
      replica's log; whoever owns the waiters says what has been reached;
    - `Answers`: the answers of a request about several partitions, complete once each has one.

A Fetch waits for bytes of many partitions at once, and is found by its session (fetching.py). The
owner of a request decides what it is answered. On the metadata log few wait, and for more than an
offset: they are looked at one by one, in the order of their arrival (`quorum.core.parking`).
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Generic, Protocol, TypeVar

from broker.partition.partition import LeaderOf, Partition
from quorum.core import parking

__all__ = [
    "WAIT_MAX_MS",
    "Answers",
    "Deadlines",
    "Expire",
    "OffsetWaiters",
    "Waiter",
    "is_worth_compacting",
]

WAIT_MAX_MS = 300_000  # whatever a client asks for: it may have gone, and nobody would tell us

_COMPACT_FROM = 1024

Expire = Callable[[int], None]  # (now_ms): answer with what there is


class Waiter(Protocol):
    """A request, or a part of it, is answered later."""

    @property
    def is_done(self) -> bool:
        """Has it been answered?"""
        ...


W = TypeVar("W", bound=Waiter)
Result = TypeVar("Result")


def is_worth_compacting(count: int) -> bool:
    """Should the entries that are done be dropped now? Yes each time that the count has doubled:
    an addition then stays cheap on average, even if nothing can be dropped."""
    return count >= _COMPACT_FROM and count & (count - 1) == 0


class Deadlines:
    """Those that wait lie here by deadline: thousands come a second, too many to scan them all.

    Those that are done stay until they come up or room is needed.
    """

    __slots__ = ("_count", "_heap", "_max")

    def __init__(self, parked_max: int) -> None:
        self._heap: list[tuple[int, int, Waiter, Expire]] = []
        self._count = 0
        self._max = parked_max

    def add(self, waiter: Waiter, deadline_ms: int, expire: Expire) -> bool:
        """False if too many wait already: the caller then answers at once."""
        if len(self._heap) >= self._max:
            self._heap = [item for item in self._heap if not item[2].is_done]
            heapify(self._heap)
            if len(self._heap) >= self._max:
                return False
        self._count += 1
        heappush(self._heap, (deadline_ms, self._count, waiter, expire))
        return True

    def tick(self, now_ms: int) -> None:
        while self._heap and (self._heap[0][0] <= now_ms or self._heap[0][2].is_done):
            _, _, waiter, expire = heappop(self._heap)
            if not waiter.is_done:
                expire(now_ms)

    def deadline_ms(self) -> int | None:
        while self._heap and self._heap[0][2].is_done:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None


class OffsetWaiters(Generic[W]):
    """Each waiter is returned once, or never if it is done before.

    A waiter belongs to the leader epoch in which it was accepted, and is refused when that has
    ended. In a later one, even of the same leader, another record may lie at its offset.
    """

    __slots__ = ("_count", "_heaps")

    def __init__(self) -> None:
        # With their leader epoch; by offset, then in turn.
        self._heaps: dict[Partition, tuple[int, list[tuple[int, int, W]]]] = {}
        self._count = 0

    def add(self, partition: Partition, offset: int, waiter: W) -> None:
        """It waits for `partition`, which leads, to reach `offset`."""
        epoch, heap = self._heaps.setdefault(partition, (partition.leader_epoch, []))
        assert epoch == partition.leader_epoch, f"waiters of epoch {epoch} were not refused"
        if is_worth_compacting(len(heap)):
            heap[:] = [item for item in heap if not item[2].is_done]
            heapify(heap)
        self._count += 1
        heappush(heap, (offset, self._count, waiter))

    def has(self, partition: Partition) -> bool:
        return partition in self._heaps

    def waiting(self, partition: Partition) -> Iterator[W]:
        """Those that wait for it, in no order."""
        _, heap = self._heaps.get(partition, (0, ()))
        return (waiter for _, _, waiter in heap)

    def reached(self, partition: Partition, offset: int) -> Iterator[W]:
        """Those that need not wait any longer, the lowest offset first."""
        led = epoch_led(partition)
        while partition in self._heaps:
            epoch, heap = self._heaps[partition]
            if heap[0][0] > offset or parking.has_ended(epoch, led):
                return
            waiter = heappop(heap)[2]
            if not heap:
                del self._heaps[partition]
            if not waiter.is_done:
                yield waiter

    def lost(self, partition: Partition) -> list[W]:
        """Take out those whose leader epoch has ended, whatever the partition has reached."""
        found = self._heaps.get(partition)
        if found is None or not parking.has_ended(found[0], epoch_led(partition)):
            return []
        return self.clear(partition)

    def clear(self, partition: Partition) -> list[W]:
        """Take out all that wait for it."""
        _, heap = self._heaps.pop(partition, (0, []))
        in_order = sorted(heap, key=lambda item: item[:2])
        return [waiter for _, _, waiter in in_order if not waiter.is_done]


def epoch_led(partition: Partition) -> int | None:
    """The leader epoch of a replica that leads."""
    return partition.role.leader_epoch if isinstance(partition.role, LeaderOf) else None


class Answers(Generic[Result]):
    """Answers about the parts of a request come one by one, each into the slot of its question."""

    __slots__ = ("_missing", "_results", "is_done")

    def __init__(self, count: int) -> None:
        self._results: list[Result | None] = [None] * count
        self._missing = count
        self.is_done = False  # the request has been answered

    @property
    def is_complete(self) -> bool:
        return self._missing == 0

    @property
    def missing(self) -> Sequence[int]:
        """The slots without an answer."""
        return [slot for slot, result in enumerate(self._results) if result is None]

    def put(self, slot: int, result: Result) -> bool:
        """Returns whether all are there now."""
        assert self._results[slot] is None, (slot, result)
        self._results[slot] = result
        self._missing -= 1
        return self.is_complete

    def take(self) -> list[Result]:
        """All of them, in order, to be told: the request is done."""
        assert self.is_complete, self._results
        assert not self.is_done, "the request has been answered"
        self.is_done = True
        return [result for result in self._results if result is not None]
