"""A partition remembers its producers, and their transactions.

The state follows the log: appends extend it on leader and follower alike, truncation takes it back,
and recovery (`quorum.core.producers`) rebuilds it from the batches. What a producer may append is
decided in idempotence.py and transactional.py.

Kafka remembers five batches of a producer, which is how many a client may have in flight. Here a
producer's batches are kept until five lie below the high watermark, so that truncation, which
stays above it, leaves exact knowledge behind; a bound holds for logs that never commit. For the
same reason a transaction is kept until its marker is below the high watermark, and so is what was
known before the marker.

The last stable offset is where readers of committed records have to stop: what lies below it is
committed, and belongs to no transaction whose end may yet be another.

    offset      0    1    2    3    4    5      high watermark 5: producer 7 has ended at 3, so the
    producer    7    8    7    7    8    8      first unstable offset is 1. It is so even if the
                          marker^         ^     marker of 8 is at 5, which may yet be cut off.

Source: KIP-98; Kafka's ProducerStateManager.
"""

from collections import deque
from collections.abc import Iterable

from quorum.core.producers import (
    BATCHES_KEPT,
    BATCHES_MAX,
    AbortedTransaction,
    ProducerBatch,
    ProducerEntry,
    after,
    tells_of_producer,
)
from wire.batch import BatchHeader
from wire.primitives import INT64_MAX
from wire.transaction_markers import Marker

__all__ = ["ProducerStates", "last_ms"]

_NEVER_MS = -1 - INT64_MAX
_OF_TRANSACTIONS = 0b0011_0000  # the attributes of batches that begin and end them


class ProducerStates:
    """`is_whole` until a truncation below what is remembered of a producer.

    The log then has batches and markers of it which only those know who read the log. No leader
    asks for that unless its election was unclean.
    """

    __slots__ = ("_entries", "_forgotten", "_transactions", "begun", "is_whole", "oldest_ms")

    def __init__(self, entries: Iterable[ProducerEntry] = (), *, high_watermark: int = 0) -> None:
        """`entries` as a log tells them that has just been opened."""
        self._forgotten = -1  # what was known before this offset is, of some producer
        self._entries = {entry.producer_id: entry for entry in entries}
        self.settle(high_watermark)
        self._count_transactions()
        self.is_whole = True
        self.oldest_ms = self._oldest_ms()  # or earlier: when the first of them wrote last

    def _count_transactions(self) -> None:
        self._transactions = _Transactions(self._entries.values())
        self.begun = self._transactions.begun  # empty: all that is committed is stable

    def _oldest_ms(self) -> int | None:
        may_expire = (entry for entry in self._entries.values() if entry.open_since < 0)
        return min(map(last_ms, may_expire), default=None)

    def entry(self, producer_id: int) -> ProducerEntry | None:
        return self._entries.get(producer_id)

    def entries(self) -> tuple[ProducerEntry, ...]:
        return tuple(self._entries.values())

    def first_unstable(self, high_watermark: int) -> int | None:
        """Where the first transaction begins that is open, or whose marker may be cut off."""
        return self._transactions.first(high_watermark)

    def appended(
        self, header: BatchHeader, marker: Marker | None = None, *, high_watermark: int = 0
    ) -> AbortedTransaction | None:
        """A batch is in the log. Returns the transaction that it has aborted.

        Replication and recovery call this without a check.
        """
        known = self._entries.get(header.producer_id)
        if (
            known is not None
            and not (known.transactions or known.earlier)
            and header.producer_epoch == known.producer_epoch
            and header.base_sequence >= 0
            and not header.attributes & _OF_TRANSACTIONS
        ):
            self._one_more(known, header, high_watermark)
            return None
        if not tells_of_producer(header, marker):
            return None
        entry = after(None if known is None else _settled(known, high_watermark), header, marker)
        self._entries[header.producer_id] = entry
        if known is not None and known.earlier:
            self._forget(known, entry)
        opened_at, is_open = -1 if known is None else known.open_since, entry.open_since >= 0
        if not is_open:
            self._written(entry)
        if opened_at < 0:
            if is_open:
                self._transactions.opened(entry.open_since)
            return None
        if marker is None:
            return None
        self._transactions.ended(opened_at, header.last_offset)
        if marker.is_commit:
            return None
        stable = self._transactions.first_open()
        return AbortedTransaction(
            header.producer_id,
            opened_at,
            header.last_offset,
            last_stable_offset=header.next_offset if stable is None else stable,
        )

    def _one_more(self, known: ProducerEntry, header: BatchHeader, high_watermark: int) -> None:
        """What `appended` comes to for most batches, in less time."""
        batch = ProducerBatch(
            header.base_sequence, header.last_sequence, header.last_offset, header.max_timestamp_ms
        )
        entry = ProducerEntry(
            known.producer_id,
            known.producer_epoch,
            (*_still_needed(known.batches, high_watermark), batch),
            known.coordinator_epoch,
            (),
            known.marker_ms,
        )
        self._entries[known.producer_id] = entry
        if self.oldest_ms is None or batch.timestamp_ms < self.oldest_ms:
            self._written(entry)

    def _written(self, entry: ProducerEntry) -> None:
        written_ms = last_ms(entry)
        if self.oldest_ms is None or written_ms < self.oldest_ms:
            self.oldest_ms = written_ms

    def truncated(self, end_offset: int) -> None:
        """Records at and after `end_offset` are gone; forget what they taught."""
        for entry in self.entries():
            left, is_known = _before(entry, end_offset)
            if left is None:
                del self._entries[entry.producer_id]
            else:
                self._entries[entry.producer_id] = left
            self.is_whole = self.is_whole and is_known
        self.is_whole = self.is_whole and end_offset > self._forgotten
        self._count_transactions()
        self.oldest_ms = self._oldest_ms()

    def settle(self, high_watermark: int) -> None:
        """Forget what no truncation can bring back, of the producers that are silent, too."""
        for entry in self.entries():
            settled = self._entries[entry.producer_id] = _settled(entry, high_watermark)
            self._forget(entry, settled)

    def _forget(self, before: ProducerEntry, after: ProducerEntry) -> None:
        gone = (each.offset for each in before.earlier if each not in after.earlier)
        self._forgotten = max(self._forgotten, *gone, -1)

    def expire(self, before_ms: int) -> None:
        """Forget producers that wrote nothing since `before_ms`, unless a transaction is open."""
        for entry in self.entries():
            if entry.open_since < 0 and last_ms(entry) < before_ms:
                del self._entries[entry.producer_id]
        self.oldest_ms = self._oldest_ms()


class _Transactions:
    """Where transactions begin that are open, or were not known to be committed; ascending."""

    __slots__ = ("_markers", "begun")

    def __init__(self, entries: Iterable[ProducerEntry]) -> None:
        found = [each for entry in entries for each in entry.transactions]
        self.begun = deque(sorted(each.first_offset for each in found))
        self._markers = {
            each.first_offset: each.marker_offset for each in found if each.marker_offset >= 0
        }

    def opened(self, first_offset: int) -> None:
        self.begun.append(first_offset)

    def ended(self, first_offset: int, marker_offset: int) -> None:
        self._markers[first_offset] = marker_offset

    def first(self, high_watermark: int) -> int | None:
        """The first that is not certain to be over. What was once below a high watermark stays so
        if a follower is told of a lower one; a truncation makes all this anew."""
        while self.begun:
            first_offset = self.begun[0]
            if self._markers.get(first_offset, high_watermark) >= high_watermark:
                return first_offset
            self.begun.popleft()
            del self._markers[first_offset]
        return None

    def first_open(self) -> int | None:
        return next((each for each in self.begun if each not in self._markers), None)


def last_ms(entry: ProducerEntry) -> int:
    """When it wrote last."""
    batch_ms = entry.batches[-1].timestamp_ms if entry.batches else _NEVER_MS
    return max(batch_ms, entry.marker_ms) if entry.marker_ms >= 0 else batch_ms


def _settled(entry: ProducerEntry, high_watermark: int) -> ProducerEntry:
    """`entry` without what neither a repetition nor a truncation can ask for."""
    batches = _still_needed(entry.batches, high_watermark)
    if not entry.transactions and not entry.earlier:
        if batches is entry.batches:
            return entry
        return ProducerEntry(
            entry.producer_id,
            entry.producer_epoch,
            batches,
            entry.coordinator_epoch,
            marker_ms=entry.marker_ms,
        )
    return entry._replace(
        batches=batches,
        transactions=tuple(
            each for each in entry.transactions if not 0 <= each.marker_offset < high_watermark
        ),
        earlier=tuple(each for each in entry.earlier if each.offset >= high_watermark),
    )


def _still_needed(
    batches: tuple[ProducerBatch, ...], high_watermark: int
) -> tuple[ProducerBatch, ...]:
    """`batches` without those that neither a repetition nor a truncation can ask for."""
    excess = 0
    while (
        len(batches) - excess > BATCHES_KEPT
        and batches[excess + BATCHES_KEPT].last_offset < high_watermark
    ):
        excess += 1
    return batches[max(excess, len(batches) + 1 - BATCHES_MAX) :]


def _before(entry: ProducerEntry, end_offset: int) -> tuple[ProducerEntry | None, bool]:
    """What was known of a producer at `end_offset`, and whether that is certain."""
    earlier = tuple(each for each in entry.earlier if each.offset < end_offset)
    if len(earlier) == len(entry.earlier):
        return _cut(entry, end_offset)
    restored = entry.earlier[len(earlier)].entry
    if restored is None:
        return None, False
    return _cut(restored._replace(earlier=earlier), end_offset)


def _cut(entry: ProducerEntry, end_offset: int) -> tuple[ProducerEntry | None, bool]:
    """`entry` in the epoch, and with the last marker, that it has."""
    batches = tuple(batch for batch in entry.batches if batch.last_offset < end_offset)
    transactions = tuple(each for each in entry.transactions if each.first_offset < end_offset)
    left = entry._replace(batches=batches, transactions=transactions)
    if batches or not entry.batches or entry.earlier or entry.coordinator_epoch >= 0:
        return left, True
    return None, _is_from_its_beginning(entry)


def _is_from_its_beginning(entry: ProducerEntry) -> bool:
    """Was there surely no batch of the producer before these?"""
    return entry.producer_epoch == 0 and entry.batches[0].base_sequence == 0
