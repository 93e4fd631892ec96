"""The smallest application on the metadata log: it proposes numbered batches and digests them.

Its state is the number of batches and a digest of them all: any batch that is missing, doubled or
out of place shows for ever after, in what it says and in every snapshot of it (R-SM).
"""

from collections.abc import Callable, Iterator
from random import Random

from jepsen_like.sim.assemblies.quorum.committed_history import EMPTY, digest_after
from jepsen_like.sim.assemblies.quorum.reader import Reader
from jepsen_like.sim.violation import Violation
from quorum.core.application import MetadataLog, State
from quorum.core.effects import Effect, Event, earliest
from quorum.core.types import OffsetAndEpoch
from wire.batch import data_batch, headers, records_of

__all__ = ["CountingApplication", "states_in"]

_RECORDS_MAX = 4
_PAYLOAD_BYTES_MAX = 60
_PIECES_MAX = 5  # batches of a snapshot


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
        reader: Reader,
        on_loaded: Callable[[OffsetAndEpoch, bytes], None] = lambda _end, _digest: None,
        on_proposed: Callable[[list[bytes], int], None] = lambda _values, _last_offset: None,
    ) -> None:
        self.leads_epoch: int | None = None
        self.proposes = True
        self.digest = EMPTY
        self.end_offset = 0  # of what has been applied
        self._log = log
        self._random = random
        self._interval_ms = interval_ms  # on average; 0 proposes nothing
        self._burst_max = burst_max
        self._next_serial = next_serial
        self.reader = reader
        self._on_committed = on_committed
        self._on_loaded = on_loaded
        self._on_proposed = on_proposed
        self._due_ms: int | None = None
        self._loading: list[bytes] = []

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
        self.reader.tick(self.end_offset, now_ms)

    def deadline_ms(self) -> int | None:
        return earliest(self._due_ms, self.reader.deadline_ms(self.end_offset))

    def take_effects(self) -> list[Effect]:
        return []

    def lead(self, epoch: int, now_ms: int) -> None:
        assert self._log.leader.leader_id == self._log.node_id, (epoch, self._log.leader)
        self.leads_epoch = epoch
        self._schedule(now_ms)
        self.reader.lead(now_ms)

    def resign(self, now_ms: int) -> None:
        self.leads_epoch = None
        self._due_ms = None
        self.reader.resign()

    # --- the state ----------------------------------------------------------------------

    def committed(self, batches: bytes, next_offset: int, now_ms: int) -> None:
        for position, header in headers(batches):
            batch = batches[position : position + header.size_bytes]
            self.digest = digest_after(self.digest, batch)
        self.end_offset = next_offset
        self._on_committed(batches, next_offset)
        self.reader.answer(self.end_offset)

    def load(self, batches: bytes, *, is_first: bool) -> None:
        if self.leads_epoch is not None:
            raise Violation("R-SS", f"loads a snapshot as leader of {self.leads_epoch}")
        if is_first:
            self._loading.clear()
        self._loading.append(batches)

    def loaded(self, end: OffsetAndEpoch, now_ms: int) -> None:
        states = states_in(b"".join(self._loading))
        self._loading.clear()
        assert len(states) <= 1, f"a snapshot of several: {states}"
        self.digest = next((digest for digest, _ in states), EMPTY)
        self.end_offset = end.offset
        self._on_loaded(end, self.digest)

    def state(self) -> State | None:
        """No two writers' snapshots have the same bytes, though they say the same."""
        record = self.digest + self._next_serial().to_bytes(8, "big")
        pieces = self._random.randint(1, _PIECES_MAX)
        return State(end_offset=self.end_offset, batches=_pieces_of(record, pieces))

    # --- proposing ----------------------------------------------------------------------

    def propose(self, now_ms: int) -> int:
        """Append one batch that no other looks like; returns its last offset."""
        values = [
            self._next_serial().to_bytes(8, "big")
            * self._random.randint(1, _PAYLOAD_BYTES_MAX // 8)
            for _ in range(self._random.randint(1, _RECORDS_MAX))
        ]
        last_offset = self._log.append(data_batch(values, timestamp_ms=now_ms), now_ms)
        self._on_proposed(values, last_offset)
        return last_offset

    def _schedule(self, now_ms: int) -> None:
        if self._interval_ms:
            self._due_ms = now_ms + self._random.randint(1, 2 * self._interval_ms)


def _pieces_of(record: bytes, count: int) -> Iterator[bytes]:
    return (data_batch([record] * (1 + piece), timestamp_ms=0) for piece in range(count))


def states_in(batches: bytes) -> set[tuple[bytes, bytes]]:
    """What the pieces of a snapshot say: the digest, and a mark of who wrote it."""
    return {
        (record.value[:8], record.value[8:])
        for position, header in headers(batches)
        if not header.is_control
        for record in records_of(batches[position : position + header.size_bytes])
        if record.value is not None
    }
