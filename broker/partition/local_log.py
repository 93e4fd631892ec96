"""A broker's view of a partition's log has its offsets, epochs and producers, but no records.

Every effect on a partition log leaves through here, so that the view and the log agree: an append
moves the end when it is emitted, because the driver carries out a log's effects in order. It
decides nothing about who may append.

A truncation and a new beginning take their time, and what is appended behind them waits
(`is_rewriting`). The view moves at once, but nobody may be told how far the log reaches until they
are done: a process that dies would take back what it has said. A truncation below the high
watermark is done when the producers have been read back (recalling.py).

Beside the offsets it remembers how many bytes the latest batches have, so that a fetch with
`min_bytes` can be judged, and reads be planned, without asking the disk.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence

from broker.partition.producer_states import ProducerStates
from broker.partition.recalling import Recall
from quorum.core.cleaning import Clean, Cleaned
from quorum.core.effects import (
    Append,
    Configure,
    DeleteLog,
    Durability,
    Event,
    FindTimestamp,
    LogState,
    Read,
    ReadDone,
    ResetLog,
    Retain,
    SaveProducers,
    Stored,
    Token,
    Trim,
    Trimmed,
    Truncate,
)
from quorum.core.log_settings import CleaningOrder, CleaningRules, LogSettings
from quorum.core.outbox import Answered, Outbox
from quorum.core.producers import AbortedTransaction
from quorum.core.types import NO_EPOCH, OffsetAndEpoch
from quorum.log.epochs import EpochCache
from wire.batch import BatchHeader
from wire.primitives import INT32_MAX
from wire.transaction_markers import read_marker

__all__ = ["LocalLog", "Moves"]

_RECALL_BYTES = 1 << 20  # read at once
_RECENT_MAX = 1024  # batches whose size is known; older ones count as "many bytes"


class RecentBatches:
    """The latest batches begin here, in offsets and in bytes since the log was opened."""

    __slots__ = ("_end_byte", "_offsets", "_starts")

    def __init__(self) -> None:
        self._offsets: list[int] = []  # base offsets, ascending
        self._starts: list[int] = []  # the byte at which each begins
        self._end_byte = 0

    def appended(self, base_offset: int, size_bytes: int) -> None:
        self._offsets.append(base_offset)
        self._starts.append(self._end_byte)
        self._end_byte += size_bytes
        if len(self._offsets) > _RECENT_MAX:
            del self._offsets[: _RECENT_MAX // 2]
            del self._starts[: _RECENT_MAX // 2]

    def truncated(self, end_offset: int) -> int:
        """How many bytes that takes away, as far as they are known."""
        kept = bisect_left(self._offsets, end_offset)
        if kept == len(self._offsets):
            return 0
        cut = self._end_byte - self._starts[kept]
        self._end_byte = self._starts[kept]
        del self._offsets[kept:]
        del self._starts[kept:]
        return cut

    def bytes_between(self, start_offset: int, end_offset: int) -> int:
        """Bytes of the batches from the one that holds `start_offset` to `end_offset`.

        INT32_MAX if the start is too long ago to know: more than anyone asks for.
        """
        if start_offset >= end_offset:
            return 0
        if not self._offsets or start_offset < self._offsets[0]:
            return INT32_MAX
        first = bisect_right(self._offsets, start_offset) - 1
        after = bisect_left(self._offsets, end_offset)
        end_byte = self._starts[after] if after < len(self._starts) else self._end_byte
        return end_byte - self._starts[first]


class Moves:
    """These partitions, by the name of their log, have moved since the broker last settled.

    A log notes itself here when its start, end or high watermark moves; whoever changes a role
    notes the partition. The broker takes them when it settles, and tells those who wait. If only
    the metadata of a role has changed, the log is where it was, and few have to hear of it.
    """

    __slots__ = ("_names",)

    def __init__(self) -> None:
        self._names: dict[str, bool] = {}

    def note(self, name: str) -> None:
        self._names[name] = True

    def note_update(self, name: str) -> None:
        """Its log is where it was, but its ISR or where a follower starts may be another."""
        self._names.setdefault(name, False)

    def take(self) -> Mapping[str, bool]:
        """Has each of them moved, or only been updated? In the order in which they were noted."""
        names, self._names = self._names, {}
        return names


class LocalLog:
    __slots__ = (
        "_high_watermark",
        "_moves",
        "_outbox",
        "_recall",
        "_recent",
        "_rewriting",
        "end_offset",
        "epochs",
        "last_epoch",
        "last_stable_offset",
        "name",
        "oldest_ms",
        "producers",
        "size_bytes",
        "start_offset",
    )

    def __init__(self, state: LogState, outbox: Outbox, moves: Moves | None = None) -> None:
        self._moves = Moves() if moves is None else moves
        self.name = state.log
        self.start_offset = state.start_offset
        self.end_offset = state.end_offset
        self.size_bytes = state.size_bytes
        self.oldest_ms: int | None = None  # as the storage last said: see `Trimmed`
        self._high_watermark = min(max(state.high_watermark, state.start_offset), state.end_offset)
        self.epochs = EpochCache(state.epochs)
        # It is the epoch of the last record, or that in which an empty log starts.
        last_offset = max(state.start_offset, state.end_offset - 1)
        self.last_epoch = self.epochs.epoch_at(last_offset)
        self.producers = ProducerStates(state.producers, high_watermark=self._high_watermark)
        self._recall: Recall | None = None  # of what that truncation has made uncertain
        self.last_stable_offset = self._stable()
        self._recent = RecentBatches()
        self._rewriting: Token | None = None  # of the last truncation or reset that is not done
        self._outbox = outbox

    @property
    def high_watermark(self) -> int:
        return self._high_watermark

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        if offset != self._high_watermark:
            self._high_watermark = offset
            is_simple = not self.producers.begun and self._recall is None
            self.last_stable_offset = offset if is_simple else self._stable()
            self._moves.note(self.name)

    def _stable(self) -> int:
        """Only what is below it is committed, and of no transaction that may yet end otherwise.

        An append does not move it: markers count from when they are committed.
        """
        if self._recall is not None:
            return self.start_offset
        unstable = self.producers.first_unstable(self._high_watermark)
        if unstable is None:
            return self._high_watermark
        return max(self.start_offset, min(unstable, self._high_watermark))

    @property
    def is_rewriting(self) -> bool:
        """Is a truncation or a new beginning under way? Then nobody may be told of the end."""
        return self._rewriting is not None

    def append(self, records: bytes, headers: Sequence[BatchHeader]) -> None:
        """Append batches whose offsets and epochs are final; `headers` are theirs.

        Those of a leader whose log is compacted may have gaps between them and before them. What
        is gone there may have been of the next batch's epoch, which so begins with the gap: see
        `observe_epoch` in `quorum.log.files.segments`.
        """
        assert headers[0].base_offset >= self.end_offset, (headers[0], self.end_offset)
        aborted: tuple[AbortedTransaction, ...] = ()
        start_offset, position = self.end_offset, 0
        for header in headers:
            self.epochs.assign(header.leader_epoch, start_offset)
            start_offset, size_bytes = header.next_offset, header.size_bytes
            self._recent.appended(header.base_offset, size_bytes)
            if header.producer_id >= 0:
                aborted += self._note_producer(header, records, position)
            position += size_bytes
        self.size_bytes += position
        self.last_epoch = headers[-1].leader_epoch
        self.end_offset = start_offset
        self._moves.note(self.name)
        token = self._outbox.token()
        self._outbox.emit(Append(log=self.name, token=token, records=records, aborted=aborted))

    def _note_producer(
        self, header: BatchHeader, records: bytes, position: int
    ) -> tuple[AbortedTransaction, ...]:
        """The transaction that the batch at `position` has aborted, if it is a marker."""
        marker = None
        if header.is_control:
            batch = memoryview(records)[position : position + header.size_bytes]
            marker = read_marker(batch, header)
        ended = self.producers.appended(header, marker, high_watermark=self._high_watermark)
        return () if ended is None else (ended,)

    def forget_empty_epochs(self) -> None:
        """Forget the epoch that we led last, if we wrote nothing in it.

        The cache says which epochs wrote. One that did not must not stand where the log of the
        next leader may have records of an earlier epoch.
        """
        self.epochs.truncate(self.end_offset)

    def truncate(self, end_offset: int) -> None:
        """Remove what lies at or after `end_offset`. A high watermark above it comes down.

        Below its start the log begins anew there: a leader that was elected uncleanly may have
        lost what was deleted here.
        """
        if end_offset >= self.end_offset:
            return
        if end_offset < self.start_offset:
            self.reset(end_offset)
            return
        self.epochs.truncate(end_offset)
        self.last_epoch = self.epochs.epoch_at(end_offset - 1)
        self.producers.truncated(end_offset)
        self.size_bytes -= self._recent.truncated(end_offset)
        self._outbox.trace(
            "truncated",
            log=self.name,
            end_offset=end_offset,
            was=self.end_offset,
            high_watermark=self.high_watermark,
        )
        self.end_offset = end_offset
        self._moves.note(self.name)
        is_certain = self.producers.is_whole or end_offset >= self.high_watermark
        self._recall = None if is_certain else Recall(self.start_offset)
        self.high_watermark = min(self.high_watermark, end_offset)
        self.last_stable_offset = self._stable()
        self._outbox.emit(
            Truncate(
                log=self.name,
                token=self._rewrite(),
                end_offset=end_offset,
                durability=Durability.SYNCED,
            )
        )

    def trim(self, start_offset: int) -> None:
        """Let the log start there, at most at the high watermark."""
        assert start_offset <= self.high_watermark, (start_offset, self.high_watermark)
        if start_offset > self.start_offset:
            self._start_at(start_offset)
            token = self._outbox.expect(self._trimmed)
            self._outbox.emit(Trim(log=self.name, token=token, start_offset=start_offset))

    def retain(self, *, since_ms: int | None, bytes_max: int | None) -> None:
        """Let old records go that consumers may have read. Where the log starts is told later."""

        def retained(event: Event, now_ms: int) -> None:
            self._trimmed(event, now_ms)
            if isinstance(event, Trimmed) and event.start_offset > self.start_offset:
                self._outbox.trace(
                    "retained",
                    log=self.name,
                    start_offset=event.start_offset,
                    was=self.start_offset,
                )
                self._start_at(event.start_offset)

        self.oldest_ms = None  # until this is answered
        self._outbox.emit(
            Retain(
                log=self.name,
                token=self._outbox.expect(retained),
                end_offset=self.high_watermark,
                since_ms=since_ms,
                bytes_max=bytes_max,
            )
        )

    def clean(
        self, rules: CleaningRules, *, now_ms: int, cleaned: Callable[[int | None, int], None]
    ) -> None:
        """Have the log compacted if it is due. `cleaned` is told when to ask again."""

        def answered(event: Event, now_ms: int) -> None:
            next_ms = None
            if isinstance(event, Cleaned):
                next_ms = event.next_ms
                self.size_bytes = self.size_bytes if event.size_bytes is None else event.size_bytes
            cleaned(next_ms, now_ms)

        producers = self.producers.entries()
        order = CleaningOrder(
            rules=rules,
            now_ms=now_ms,
            end_offset=self.last_stable_offset,
            last_batches=frozenset(
                (each.producer_id, each.batches[-1].last_offset)
                for each in producers
                if each.batches
            ),
            last_epochs=frozenset(
                (each.producer_id, each.producer_epoch) for each in producers if not each.batches
            ),
        )
        self._outbox.emit(Clean(log=self.name, token=self._outbox.expect(answered), order=order))

    def _trimmed(self, event: Event, _now_ms: int) -> None:
        if isinstance(event, Trimmed):
            self.size_bytes, self.oldest_ms = event.size_bytes, event.oldest_ms

    def _start_at(self, start_offset: int) -> None:
        """What was let go of was committed, even if a new leader has not told us so yet."""
        self.start_offset = min(start_offset, self.end_offset)  # it may have been cut meanwhile
        self._moves.note(self.name)
        self.high_watermark = max(self.high_watermark, self.start_offset)
        self.last_stable_offset = self._stable()
        self.epochs.truncate_start(self.start_offset)

    def reset(self, start_offset: int) -> None:
        """Begin anew: what we have is of no use to go on with at `start_offset`."""
        self._outbox.trace(
            "log-reset", log=self.name, start_offset=start_offset, was=self.end_offset
        )
        self.epochs.truncate(0)
        self.last_epoch = NO_EPOCH
        self.producers = ProducerStates()
        self._recall = None
        self._recent.truncated(0)
        self.size_bytes = 0
        self.start_offset = self.end_offset = self.high_watermark = start_offset
        self.last_stable_offset = start_offset
        self._moves.note(self.name)
        start = OffsetAndEpoch(start_offset, NO_EPOCH)
        self._outbox.emit(ResetLog(log=self.name, token=self._rewrite(), start=start))

    def _rewrite(self) -> Token:
        self._rewriting = self._outbox.expect(self._rewritten)
        return self._rewriting

    def _rewritten(self, event: Event, _now_ms: int) -> None:
        if not isinstance(event, Stored) or event.token != self._rewriting:
            return
        if self._recall is not None:
            self._read_back(self._recall)
            return
        self._rewriting = None
        self._moves.note(self.name)

    def _read_back(self, recall: Recall) -> None:
        """Read the next piece of the log, for its producers, until there is none."""

        def answered(event: Event, _now_ms: int) -> None:
            if self._recall is not recall or not isinstance(event, ReadDone):
                return  # truncated again meanwhile, or the log has failed
            is_trimmed = recall.next_offset < self.start_offset
            recall.take(event.records)
            if event.records or is_trimmed:
                self._read_back(recall)
                return
            entries = recall.entries()
            self.producers = ProducerStates(entries, high_watermark=self._high_watermark)
            self._rewriting = self._recall = None
            self.last_stable_offset = self._stable()
            self._moves.note(self.name)

        recall.next_offset = max(recall.next_offset, self.start_offset)
        self.read(
            start_offset=recall.next_offset,
            end_offset=self.end_offset,
            bytes_max=_RECALL_BYTES,
            answered=answered,
        )

    def configure(self, settings: LogSettings) -> None:
        token = self._outbox.token()
        self._outbox.emit(Configure(log=self.name, token=token, settings=settings))

    def save_producers(self) -> None:
        """For the next start: the process ends in order, and appends nothing more.

        If not all of them are known any more, the next start has to read the log.
        """
        if not self.producers.is_whole:
            return
        self.producers.settle(self.high_watermark)
        self._outbox.emit(
            SaveProducers(
                log=self.name,
                token=self._outbox.token(),
                end_offset=self.end_offset,
                producers=self.producers.entries(),
            )
        )

    @staticmethod
    def delete(name: str, outbox: Outbox, *, is_stray: bool = False) -> None:
        """Deletes a log, also one that is still being opened: its effects keep their order."""
        outbox.emit(DeleteLog(log=name, token=outbox.token(), is_stray=is_stray))

    def read(
        self,
        *,
        start_offset: int,
        end_offset: int,
        bytes_max: int,
        answered: Answered,
        wants_aborted: bool = False,
    ) -> None:
        """Answered by `ReadDone`, or `StorageFailed`."""
        self._outbox.emit(
            Read(
                log=self.name,
                token=self._outbox.expect(answered),
                start_offset=start_offset,
                end_offset=end_offset,
                bytes_max=bytes_max,
                wants_aborted=wants_aborted,
            )
        )

    def find_timestamp(self, *, timestamp_ms: int, end_offset: int, answered: Answered) -> None:
        """Answered by `TimestampFound`, or `StorageFailed`."""
        self._outbox.emit(
            FindTimestamp(
                log=self.name,
                token=self._outbox.expect(answered),
                timestamp_ms=timestamp_ms,
                end_offset=end_offset,
            )
        )

    def bytes_between(self, start_offset: int, end_offset: int) -> int:
        return self._recent.bytes_between(start_offset, end_offset)
