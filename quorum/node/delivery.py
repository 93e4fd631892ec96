"""Delivery gives the applications of a node committed records in order, and snapshots of them.

    - records come each once, from the start of the log or where a snapshot ends, in bounded pieces;
    - a snapshot comes first at the start, and whenever the log begins after what was delivered;
    - in return, the applications are asked for their state when a snapshot is due.

Decides nothing about the log or what is in it. A snapshot that cannot be read is damage to this
node's disk, and ends the process.

Source: KIP-595 and KIP-630, the state machine's side; Kafka's RaftClient.Listener.
"""

from collections.abc import Collection

from quorum.core.application import Application, Engine
from quorum.core.effects import Event, Read, ReadDone, ReadSnapshot, SnapshotRead, Token
from quorum.core.outbox import EffectQueue
from quorum.core.types import OffsetAndEpoch
from quorum.log.applied_times import AppliedTimes
from quorum.log.snapshots import SnapshotLoad
from quorum.raft.config import SnapshotSettings
from quorum.raft.snapshot_schedule import SnapshotSchedule
from wire.batch import headers
from wire.varint import Malformed

__all__ = [
    "DELIVERY_BYTES_MAX",
    "LOAD_BYTES_MAX",
    "NEWEST_BYTES_MAX",
    "OWNER",
    "Delivery",
    "next_after",
]

OWNER = "member"
# A piece: what an application may take in before others have a turn. What is newest comes in pieces
# of about 500 records, one a millisecond and so one a turn, however often a turn settles; what the
# disk has, in pieces of twice as many; a snapshot, as one piece after the other. A broker has
# heartbeats to send meanwhile.
NEWEST_BYTES_MAX = 1 << 14
DELIVERY_BYTES_MAX = 1 << 15
LOAD_BYTES_MAX = 1 << 18


class Delivery:
    def __init__(
        self, engine: Engine, applications: Collection[Application], settings: SnapshotSettings
    ) -> None:
        self._engine = engine
        self._applications = applications
        self._schedule = SnapshotSchedule(settings)
        self.outbox = EffectQueue(OWNER)
        self._reading: int | None = None  # the token of the read in flight
        self._last_timestamp_ms = -1  # of what was delivered
        self._is_saving = True  # a snapshot, as far as is known: the engine may say no
        self._load: SnapshotLoad | None = None
        self.next_offset = engine.start_offset  # all before it has been delivered
        self.applied_times = AppliedTimes()
        self._piece_ms = -1  # when the last piece of what is in memory was begun
        self._piece_left = 0  # its bytes that were not delivered
        # When to poll again, if there is more in memory. What is under way leads to an event.
        self.due_ms: int | None = None
        self._load_latest()

    def receive(self, event: Event, now_ms: int) -> None:
        """What was read of the disk: `event` is the answer to the read that is in flight."""
        assert isinstance(event, ReadDone | SnapshotRead), event
        assert event.token.number == self._reading, (event.token, self._reading)
        self._reading = None
        if isinstance(event, ReadDone):
            self._read_done(event, now_ms)
        else:
            self._snapshot_read(event, now_ms)

    def poll(self, now_ms: int) -> bool:
        """Deliver a piece of what is in memory, or ask the disk for one.

        What a leader appended is in memory when it is committed, up to `quorum.log.tail`'s bound.
        Says whether anything was delivered.
        """
        self.due_ms = None
        if self._schedule.taken_ms is None:
            self._schedule.taken(now_ms)  # the process has begun
        if self._reading is not None:
            return False
        end_offset = self._engine.committed_through  # never before the log's start
        has_more = self.next_offset < end_offset
        if has_more and self._load is None and self.next_offset < self._engine.start_offset:
            self._load_latest()
        if self._load is not None:
            self._read_snapshot(self._load)
            return False
        if self._is_saving:
            self._is_saving = self._engine.is_saving_snapshot
        due_ms = self._schedule.due_ms
        if due_ms is not None and due_ms <= now_ms and not self._is_saving:
            self._save_snapshot(now_ms)
        has_delivered = has_more and self._deliver_newest(end_offset, now_ms)
        if self._reading is None:
            if self.next_offset < end_offset:
                self.due_ms = now_ms + 1
            elif not self._is_saving:
                self.due_ms = self._schedule.due_ms
        return has_delivered

    # --- records --------------------------------------------------------------------------------

    def _deliver_newest(self, end_offset: int, now_ms: int) -> bool:
        """Up to `end_offset`, where what is committed ends."""
        before = self.next_offset
        if now_ms != self._piece_ms:
            self._piece_ms, self._piece_left = now_ms, NEWEST_BYTES_MAX
        while self._piece_left > 0 and self.next_offset < end_offset:
            records = self._engine.newest(
                start_offset=self.next_offset,
                end_offset=end_offset,
                bytes_max=self._piece_left,
            )
            if records is None:
                self._read()
                break
            self._deliver(records, end_offset, now_ms)
            self._piece_left -= len(records)
        return self.next_offset > before

    def _token(self) -> Token:
        token = self.outbox.token()
        self._reading = token.number
        return token

    def _read(self) -> None:
        self.outbox.emit(
            Read(
                log=self._engine.log_name,
                token=self._token(),
                start_offset=self.next_offset,
                end_offset=self._engine.committed_through,
                bytes_max=DELIVERY_BYTES_MAX,
            )
        )

    def _read_done(self, done: ReadDone, now_ms: int) -> None:
        if self.next_offset < self._engine.start_offset:
            return  # the log was replaced meanwhile: a snapshot has these records, and more
        self._deliver(done.records, self._engine.committed_through, now_ms)

    def _deliver(self, records: bytes, committed: int, now_ms: int) -> None:
        """Whole batches from `next_offset` on, which end at `committed` or before it."""
        next_offset = self.next_offset
        for _, header in headers(records):
            assert header.base_offset == next_offset, (header.base_offset, next_offset)
            next_offset = header.next_offset
            self._last_timestamp_ms = header.max_timestamp_ms
        assert self.next_offset < next_offset <= committed, (next_offset, committed)
        self.next_offset = next_offset
        self._schedule.delivered(len(records), now_ms)
        for application in self._applications:
            application.committed(records, next_offset, now_ms)
        self.applied_times.note(next_offset, now_ms)

    # --- snapshots ------------------------------------------------------------------------------

    def _load_latest(self) -> None:
        latest = self._engine.latest_snapshot
        self._load = None if latest is None else SnapshotLoad(latest)

    def _read_snapshot(self, load: SnapshotLoad) -> None:
        self.outbox.emit(
            ReadSnapshot(
                log=self._engine.log_name,
                token=self._token(),
                id=load.id,
                position=load.position,
                bytes_max=LOAD_BYTES_MAX,
            )
        )

    def _snapshot_read(self, read: SnapshotRead, now_ms: int) -> None:
        assert self._load is not None, read.token
        load = self._load
        if read.size_bytes < 0 and self._engine.latest_snapshot != load.id:
            self._load_latest()  # a newer one has taken its place
            return
        try:
            is_first = load.is_at_start
            batches = load.take(read.records, read.size_bytes)
        except Malformed as malformed:
            reason = f"the snapshot {load.id} cannot be read: {malformed}"
            self.outbox.stop(reason, 1)
            return
        if batches:
            for application in self._applications:
                application.load(batches, is_first=is_first)
        if load.is_complete:
            self._loaded(load, now_ms)

    def _loaded(self, load: SnapshotLoad, now_ms: int) -> None:
        self._load = None
        self.next_offset = next_after(load.id)
        self._last_timestamp_ms = load.last_timestamp_ms
        self._schedule.taken(now_ms)
        self.outbox.trace(
            "snapshot_loaded", offset=load.id.offset, epoch=load.id.epoch, bytes=load.position
        )
        for application in self._applications:
            application.loaded(load.id, now_ms)
        self.applied_times.note(self.next_offset, now_ms)

    def _save_snapshot(self, now_ms: int) -> None:
        """Save the state of the first application that has something new: all were given the same.

        It may end a little before what was delivered: control batches change no state.
        """
        known = self._engine.latest_snapshot or OffsetAndEpoch(self._engine.start_offset, 0)
        for application in self._applications:
            state = application.state()
            if state is not None and state.end_offset > known.offset:
                assert state.end_offset <= self.next_offset, (state.end_offset, self.next_offset)
                self._schedule.taken(now_ms)
                self._is_saving = True
                self._engine.save_snapshot(
                    state, last_timestamp_ms=self._last_timestamp_ms, now_ms=now_ms
                )
                return
        self._schedule.put_off(now_ms)


def next_after(snapshot_id: OffsetAndEpoch) -> int:
    """The first offset to deliver once a snapshot is loaded: it holds all before its end.

    A rule of its own, since an end is easily taken for the last record.
    """
    return snapshot_id.offset
