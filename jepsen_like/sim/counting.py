"""The smallest application on the metadata log: it proposes numbered batches and counts them.

Whatever a node is told is committed must be the one history (R-SM); the simulator compares byte for
byte through `on_committed`, so the count here is only for people.
"""

from collections.abc import Callable
from random import Random

from quorum.application import MetadataLog, State
from quorum.effects import Effect, Event
from quorum.types import OffsetAndEpoch
from wire.batch import data_batch, headers

__all__ = ["CountingApplication"]

_RECORDS_MAX = 4
_PAYLOAD_BYTES_MAX = 60


class CountingApplication:
    """Proposes while it leads, at random intervals."""

    def __init__(
        self,
        *,
        log: MetadataLog,
        random: Random,
        interval_ms: int,
        burst_max: int,
        next_serial: Callable[[], int],
        on_committed: Callable[[bytes, int], None],
    ) -> None:
        self.leads_epoch: int | None = None
        self.proposes = True
        self.batches_committed = 0
        self._log = log
        self._random = random
        self._interval_ms = interval_ms  # on average; 0 proposes nothing
        self._burst_max = burst_max
        self._next_serial = next_serial
        self._on_committed = on_committed
        self._due_ms: int | None = None

    def serves(self, body: object) -> bool:
        return False

    def receive(self, event: Event, now_ms: int) -> None:
        raise AssertionError(f"nothing is ever asked of this application: {event}")

    def tick(self, now_ms: int) -> None:
        if self._due_ms is not None and now_ms >= self._due_ms:
            if self.proposes:
                for _ in range(self._random.randint(1, self._burst_max)):
                    self.propose(now_ms)
            self._schedule(now_ms)

    def deadline_ms(self) -> int | None:
        return self._due_ms

    def take_effects(self) -> list[Effect]:
        return []

    def lead(self, epoch: int, now_ms: int) -> None:
        assert self._log.leader.leader_id == self._log.node_id, (epoch, self._log.leader)
        self.leads_epoch = epoch
        self._schedule(now_ms)

    def resign(self, now_ms: int) -> None:
        self.leads_epoch = None
        self._due_ms = None

    def committed(self, batches: bytes, next_offset: int, now_ms: int) -> None:
        self.batches_committed += sum(1 for _ in headers(batches))
        self._on_committed(batches, next_offset)

    def load(self, batches: bytes, *, is_first: bool) -> None:
        raise NotImplementedError

    def loaded(self, end: OffsetAndEpoch, now_ms: int) -> None:
        raise NotImplementedError

    def state(self) -> State | None:
        return None

    def propose(self, now_ms: int) -> int:
        """Append one batch that no other looks like; returns its last offset."""
        values = [
            self._next_serial().to_bytes(8, "big")
            * self._random.randint(1, _PAYLOAD_BYTES_MAX // 8)
            for _ in range(self._random.randint(1, _RECORDS_MAX))
        ]
        return self._log.append(data_batch(values, timestamp_ms=now_ms), now_ms)

    def _schedule(self, now_ms: int) -> None:
        if self._interval_ms:
            self._due_ms = now_ms + self._random.randint(1, 2 * self._interval_ms)
