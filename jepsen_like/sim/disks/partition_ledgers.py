"""Ledgers of partition logs say what the shipped storage may leave of them at a restart.

Kafka acknowledges records of partitions without a sync, so hardly anything of them is promised. The
`StoredLog` of a partition on the shipped storage is a ledger all the same: `written` is what the
process has asked for, `durable` what is known to be on the medium, `waiting` what was asked for
since the log was opened. What the next process finds is held against it (S-DU):

- a history that was: it ends with a batch that was the last one once, and has all before it;
- everything that is known to be on the medium, but for what a truncation was about to remove;
- after a death without a power failure, everything that was appended, unless a truncation or a
  reset was under way, or the system has read again what a failed sync did not write;
- a start that is not behind where retention, a deletion of records or a new beginning moved it;
- a high watermark that was saved of this log, or a lower one, and none of a deleted one (S-HW);
- the producers whose batches it has, each with its last one, and no batch that it has not (S-PR);
- of those the transactions that are open, and where they began (S-PR).

What a process reads was written; it is told of the aborted transactions in it, and of no other ones
if it asks for them (S-TX).

Opening a log makes what was found of it durable.
"""

from collections.abc import Callable
from uuid import UUID

from jepsen_like.sim.disks.promises import content_of, possible_last, promised, settle
from jepsen_like.sim.disks.world_workers import QueuedWorkers
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.logs.logtree import LogTree
from jepsen_like.sim.logs.stored_log import StoredLog, new_log, producers_in
from jepsen_like.sim.violation import Violation
from quorum.core.effects import Append, LogState, Opened, OpenLog, Read, ReadDone, Token, Trimmed
from quorum.core.producers import ProducerEntry
from quorum.core.storage import METADATA_LOG, StorageEvent
from quorum.core.types import OffsetAndEpoch
from quorum.log.files.file_storage import FileStorage
from wire.batch import headers, read_header

__all__ = ["PartitionLedgers", "read_all"]

_LOOKING = Token("observer", 0)
_BYTES_MAX = 1 << 30


class PartitionLedgers:
    """The ledgers of one disk. They raise `Violation`."""

    def __init__(self, logs: dict[str, StoredLog], tree_of: Callable[[str, UUID], LogTree]) -> None:
        """`logs` are those of a disk, the metadata log among them."""
        self._logs = logs
        self._tree_of = tree_of
        self._wants_aborted: set[Token] = set()  # of reads
        self._opens: dict[str, Token] = {}  # by log: of what is opened, unless a deletion follows
        self._high_watermarks: dict[
            tuple[str, str], int
        ] = {}  # by log and topic: the highest saved

    def saves(self, entries: tuple[tuple[str, int, int], ...]) -> None:
        """The broker has these high watermarks saved."""
        for topic, partition, offset in entries:
            stored = self._logs.get(f"{topic}-{partition}")
            if stored is not None:
                key = f"{topic}-{partition}", str(stored.topic_id)
                self._high_watermarks[key] = max(offset, self._high_watermarks.get(key, 0))

    # --- after the end of a process ---------------------------------------------------------

    def look(self, storage: FileStorage, workers: QueuedWorkers, *, lost: bool) -> None:
        """Look at all that `storage` finds. `lost`: writes may be gone."""
        found = {each.log: each for each in storage.found}
        for name in [name for name in self._logs if name not in found and name != METADATA_LOG]:
            self._is_missing(name, lost=lost)
        for name, each in found.items():
            known = self._logs.get(name)
            topic_id = each.topic_id
            if not topic_id.int and known is not None:  # the file that says it is lost
                topic_id = known.topic_id
            state = _opened(storage, workers, OpenLog(log=name, token=_LOOKING, topic_id=topic_id))
            records = read_all(storage, state)
            if known is None or known.topic_id != topic_id:  # a deleted one has come back
                known = self._new(name, topic_id)
                known.written = _content_of(known, state, records)
                known.start_max = state.start_offset
                self._found(state, known, records, lost=True)
            else:
                self._found(state, known, records, lost=lost)

    def _new(self, name: str, topic_id: UUID) -> StoredLog:
        stored = self._logs[name] = new_log(self._tree_of, name, topic_id)
        return stored

    def _is_missing(self, name: str, *, lost: bool) -> None:
        stored = self._logs.pop(name)
        if stored.durable.entries:
            raise Violation("S-DU", f"{name} is gone, and {stored.durable.end} was synced")
        if stored.written.entries and not lost and not stored.failed:
            raise Violation("S-DU", f"{name} is gone with {stored.written.end}")

    def _found(self, state: LogState, stored: StoredLog, records: bytes, *, lost: bool) -> None:
        content = _content_of(stored, state, records)
        _starts_where_it_was_moved(state, stored)
        synced = promised(stored).entries[-1:]
        # A start that was moved behind it may last where the records up to there did not.
        if synced and not content.holds(synced[0]) and content.start_offset < synced[0].next_offset:
            end = content.end
            raise Violation("S-DU", f"{state.log}: {synced[0]} was synced, and {end} is the end")
        if content.entries and content.entries[-1] not in possible_last(stored):
            last = content.entries[-1]
            raise Violation("S-DU", f"{state.log}: {last} has come back, or never was there")
        keeps_all = not lost and not stored.failed and _is_appended_to(stored)
        if keeps_all and content.last is not stored.written.last:
            written = stored.written.last
            raise Violation("S-DU", f"{state.log}: of {written} {content.last} is left")
        settle(stored, content)
        before, stored.written = stored.durable, content
        _, stored.aborted = producers_in(content.entries)
        stored.durable = content.copy()
        stored.durable.truncate(before.end_offset)

    # --- of a process -------------------------------------------------------------------------

    def opens(self, effect: OpenLog) -> None:
        self._opens[effect.log] = effect.token

    def reads(self, effect: Read) -> None:
        if effect.wants_aborted:
            self._wants_aborted.add(effect.token)

    def deletes(self, log: str) -> None:
        """Forget the log, and what the process will be told of an opening before its deletion."""
        self._logs.pop(log, None)
        self._opens.pop(log, None)

    def note(self, event: StorageEvent) -> None:
        """The process is about to be told this."""
        match event:
            case Opened(state=state, token=token) if self._opens.get(state.log) == token:
                self._is_opened(state)
            case Trimmed(log=name, start_offset=start_offset) if name in self._logs:
                self._logs[name].trim(start_offset)
            case ReadDone(log=name) if name in self._logs and name != METADATA_LOG:
                is_told = event.token in self._wants_aborted
                self._wants_aborted.discard(event.token)
                _is_read(self._logs[name], event, is_told=is_told)

    def _is_opened(self, state: LogState) -> None:
        stored = self._logs.get(state.log)
        if stored is None or (stored.topic_id != state.topic_id and not stored.written.entries):
            stored = self._new(state.log, state.topic_id)
        written = stored.written
        if (state.topic_id, state.end_offset) != (stored.topic_id, written.end_offset):
            raise Violation(
                "S-DU", f"{state} is opened, {written.end} of {stored.topic_id} is there"
            )
        saved = self._high_watermarks.get((state.log, str(state.topic_id)), 0)
        if state.high_watermark > saved:
            raise Violation(
                "S-HW", f"{state.log} is opened with {state.high_watermark}, not {saved}"
            )
        _starts_where_it_was_moved(state, stored)
        _knows_its_producers(state, written)
        stored.durable = written.copy()
        _, stored.aborted = producers_in(written.entries)


def _knows_its_producers(state: LogState, content: Content) -> None:
    """Logs are small here: a start that has to read for them reads every batch."""
    written = [read_header(entry.records) for entry in content.entries]
    known, _ = producers_in(content.entries)
    told = {each.producer_id: each for each in state.producers}
    for producer_id, entry in known.items():
        if entry.batches and not _has_last(told.get(producer_id), entry):
            raise Violation("S-PR", f"{state.log}: it ends with {entry}, and not {told}")
        if not _has_transaction(told.get(producer_id), entry, state.start_offset):
            raise Violation("S-PR", f"{state.log}: {entry} has a transaction, and not {told}")
    there = {(each.producer_id, each.base_sequence, each.last_offset) for each in written}
    for producer_id, entry in told.items():
        for batch in entry.batches:
            of_log = (producer_id, batch.base_sequence, batch.last_offset)
            if batch.last_offset >= state.start_offset and of_log not in there:
                raise Violation("S-PR", f"{state.log}: it has no {batch} of {producer_id}")


def _has_transaction(told: ProducerEntry | None, known: ProducerEntry, start_offset: int) -> bool:
    """A transaction may have begun in what was trimmed."""
    told_since = -1 if told is None else told.open_since
    return told_since == known.open_since or 0 <= told_since < start_offset


def _has_last(told: ProducerEntry | None, known: ProducerEntry) -> bool:
    """The epoch of a producer, and the batch that it wrote last. A snapshot has one time for both
    that batch and the last marker, which may have been trimmed."""
    if told is None or not told.batches or told.producer_epoch != known.producer_epoch:
        return False
    last = known.batches[-1]
    late = last._replace(timestamp_ms=max(last.timestamp_ms, known.marker_ms, told.marker_ms))
    return told.batches[-1] in (last, late)


def read_all(storage: FileStorage, state: LogState) -> bytes:
    """The records of an open log. Raises Violation if it cannot be read."""
    pieces: list[bytes] = []
    offset = state.start_offset
    while offset < state.end_offset:
        storage.perform(
            Read(
                log=state.log,
                token=_LOOKING,
                start_offset=offset,
                end_offset=state.end_offset,
                bytes_max=_BYTES_MAX,
            )
        )
        (done,) = storage.take_answers()
        if not isinstance(done, ReadDone) or not done.records:
            raise Violation("S-DU", f"offset {offset} of {state} cannot be read: {done}")
        pieces.append(done.records)
        *_, (_, last) = headers(done.records)
        offset = last.next_offset
    return b"".join(pieces)


def _opened(storage: FileStorage, workers: QueuedWorkers, effect: OpenLog) -> LogState:
    storage.perform(effect)
    events: list[StorageEvent] = []
    while not events:
        workers.wait()
        events = storage.take_events()
    event = events[0]  # of a log that fails, the others of its directory fail with it
    if not isinstance(event, Opened):
        raise Violation("S-UP", f"{effect.log} cannot be opened: {event}")
    return event.state


def _is_read(stored: StoredLog, done: ReadDone, *, is_told: bool) -> None:
    records = done.records
    for position, header in headers(records):
        entry = stored.tree.at(header.leader_epoch, header.base_offset)
        if entry is None or entry.records != records[position : position + header.size_bytes]:
            raise Violation("S-DU", f"{header} was read, and {entry} written")
    if not is_told or not _is_appended_to(stored):  # it may have been read before a truncation
        return
    told = {(each.producer_id, each.last_offset) for each in done.aborted}
    there = {(each.producer_id, each.last_offset) for each in stored.aborted}
    known = {(each.producer_id, each.last_offset) for each in stored.aborted_in(records)}
    if not known <= told:
        raise Violation("S-TX", f"{known - told} are aborted, and {told} told")
    if not told <= there and stored.written.start_offset == 0:
        raise Violation("S-TX", f"{told - there} are told to be aborted, and are not")


def _is_appended_to(stored: StoredLog) -> bool:
    return all(isinstance(waiting.effect, Append) for waiting in stored.waiting)


def _starts_where_it_was_moved(state: LogState, stored: StoredLog) -> None:
    """A start behind that would hide records that nobody let go of, were they synced or not."""
    if state.start_offset > stored.start_max:
        raise Violation(
            "S-DU",
            f"{state.log} starts at {state.start_offset}, moved to {stored.start_max} at most",
        )


def _content_of(stored: StoredLog, state: LogState, records: bytes) -> Content:
    if records:
        return content_of(stored, state, records)
    start, last = OffsetAndEpoch(state.start_offset, -1), stored.written.last
    if last is None or last.next_offset != start.offset:  # what it stands behind is not known
        last = stored.tree.latest_before(start.offset)
    return Content([], last, start)
