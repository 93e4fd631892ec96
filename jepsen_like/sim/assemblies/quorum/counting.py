"""The smallest application on the metadata log: it proposes numbered batches and digests them.

Its state is the number of batches and a digest of them all: any batch that is missing, doubled or
out of place shows for ever after, in what it says and in every snapshot of it (R-SM). A reader asks
it again and again for what is committed, as a client would (Raft thesis 6.4).
"""

from collections.abc import Callable, Iterator
from random import Random

from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.assemblies.quorum.quorum_view import EMPTY, digest_after
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from quorum.core.application import State
from quorum.core.effects import Effect, Event, Request, earliest
from quorum.core.types import OffsetAndEpoch
from quorum.node.confirmed_reads import ConfirmedReads, ConfirmingLog
from wire.batch import data_batch, headers, records_of

__all__ = ["Answer", "ApplicationListener", "CountingApplication", "Reader", "states_in"]

_RECORDS_MAX = 4
_PAYLOAD_BYTES_MAX = 60
_PIECES_MAX = 5  # batches of a snapshot
_READ_TIMEOUT_MS = 5_000

Answer = Callable[[int], None]  # where all ends that the answer is read from


class ApplicationListener:
    """Is told what the application of a host does. Subclasses name what they listen to."""

    def proposes(self, host: Host, values: list[bytes], last_offset: int) -> None:
        """It has appended these."""

    def applies(self, host: Host, batches: bytes, next_offset: int) -> None: ...

    def loads(self, host: Host, end: OffsetAndEpoch, digest: bytes) -> None: ...

    def asks(self, host: Host) -> Answer:
        """A read is asked for; returns who hears the answer."""
        return lambda _applied_offset: None


class CountingApplication:
    """Proposes while it leads, at random intervals."""

    def __init__(
        self,
        log: ConfirmingLog,
        host: Host,
        options: Options,
        world: VirtualTime,
        told: ApplicationListener,
    ) -> None:
        self.leads_epoch: int | None = None
        self.proposes = True
        self.digest = EMPTY
        self.end_offset = 0  # of what has been applied
        life = f"{host.node_id}/{host.incarnation}"
        self.reader = Reader(
            log,
            world.fork(f"reader/{life}"),
            interval_ms=options.read_interval_ms,
            asked=lambda: told.asks(host),
        )
        self._log = log
        self._host = host
        self._options = options
        self._random: Random = world.fork(f"application/{life}")
        self._next_serial = world.sequence
        self._told = told
        self._due_ms: int | None = None
        self._loading: list[bytes] = []

    def serves(self, body: object) -> bool:
        return False

    def receive(self, event: Event, now_ms: int) -> None:
        raise AssertionError(f"nothing is ever asked of this application: {event}")

    def tick(self, now_ms: int) -> None:
        if self._due_ms is not None and now_ms >= self._due_ms:
            if self.proposes:
                for _ in range(self._random.randint(1, self._options.burst_max)):
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
        self._told.applies(self._host, batches, next_offset)
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
        self._told.loads(self._host, end, self.digest)

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
        self._told.proposes(self._host, values, last_offset)
        return last_offset

    def _schedule(self, now_ms: int) -> None:
        interval_ms = self._options.propose_interval_ms
        if interval_ms:
            self._due_ms = now_ms + self._random.randint(1, 2 * interval_ms)


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


class Reader:
    """Belongs to one process. `asked` is told of every question, and says who hears the answer."""

    def __init__(
        self, log: ConfirmingLog, random: Random, *, interval_ms: int, asked: Callable[[], Answer]
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
        self._waiting.park(request, now_ms, timeout_ms=_READ_TIMEOUT_MS)

    def answer(self, applied_offset: int) -> None:
        """All that is ready is answered from what has been applied."""
        for request in self._waiting.take_ready(applied_offset):
            self.reads += 1
            assert callable(request.body), request
            request.body(applied_offset)

    def deadline_ms(self, applied_offset: int) -> int | None:
        return earliest(self._due_ms, self._waiting.deadline_ms(applied_offset))
