"""Compaction keeps of a batch the last record of each key, and tombstones for a while.

The cleaner reads the *dirty* part of a log once and notes the last offset of each key (`KeyMap`).
Then it reads the log from its start, up to where that map reaches, and drops each record whose key
has a later offset there, and each without a key. What stays, stays where it is:

- A batch of which nothing goes is kept byte by byte. Any other keeps its first and its last offset,
  its producer, its sequences and its codec, so that offsets and sequences mean what they meant.
- A batch of which nothing is left goes, unless the sequences in its header are still needed, or it
  is the last of its segment: that has to end where the next one begins, lest a loss look the same,
  and the last of the log where its replicas end.
- A tombstone hides earlier records, also from readers who are slow. The first pass that keeps it
  notes in its batch when it may go (KIP-534); a later pass lets it go.
- Records of aborted transactions hide nothing, and go. Those of committed ones are as any other.
- A marker stays as long as its transaction has a batch before it, for readers and for whoever reads
  the log back. The first pass that finds none notes when it may go, as of a tombstone: a consumer
  that has read the records meets the marker until then.
- The last batch of a producer that may yet write keeps its header, and so does the marker of one
  of whose epoch nothing else is left.

Pure. Source: Kafka's Cleaner (`shouldRetainRecord`, `checkBatchRetention`), MemoryRecords.filterTo
and CleanedTransactionMetadata. Kafka lets the last batch of a segment go that is not the last of
its round.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from quorum.core.producers import AbortedTransaction
from quorum.log.cleaned_transactions import AbortedTransactions
from wire.batch import (
    HEADER_BYTES,
    BatchHeader,
    Compression,
    CorruptBatch,
    is_intact,
    plain_records,
    repacked,
    write_header,
)
from wire.transaction_markers import read_marker
from wire.varint import Buffer, Malformed, read_varint, varint

__all__ = ["Cleaner", "KeyMap", "RecordSpan", "spans_in"]

_ENTRY_BYTES = 160  # of a dictionary of byte strings and numbers, besides the bytes of the key
_LEVELS = {Compression.GZIP: -1, Compression.LZ4: 9, Compression.ZSTD: 3}  # Kafka's defaults
_NO_VALUE = 0x01  # the length of what is null: -1
_COMPRESSION_AND_HORIZON = 0b0100_0111
_DELETE_HORIZON = 0b0100_0000


class RecordSpan(NamedTuple):
    """A record of an opened batch, from byte `start` to byte `end`."""

    start: int
    end: int
    rest: int  # where it goes on behind its timestamp
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def spans_in(body: bytes, header: BatchHeader) -> list[RecordSpan]:
    """The records of a batch that has been opened. Raises `CorruptBatch`."""
    found: list[RecordSpan] = []
    at, new = 0, tuple.__new__
    try:
        for _ in range(header.record_count):
            start = at
            if (byte := body[at]) < 128:  # as most of these numbers are
                size, at = byte >> 1, at + 1
            else:
                size, at = read_varint(body, at)
            end = at + size
            if (byte := body[at + 1]) < 128:  # behind the attributes
                timestamp_delta, rest = (byte >> 1) ^ -(byte & 1), at + 2
            else:
                timestamp_delta, rest = read_varint(body, at + 1)
            if (byte := body[rest]) < 128:
                offset_delta, at = byte >> 1, rest + 1
            else:
                offset_delta, at = read_varint(body, rest)
            if (byte := body[at]) < 128:
                key_size, at = (byte >> 1) ^ -(byte & 1), at + 1
            else:
                key_size, at = read_varint(body, at)
            key = None
            if key_size >= 0:
                key = body[at : at + key_size]
                at += key_size
            if not start < at < end <= len(body):
                raise CorruptBatch(f"a record of {size} bytes, in the batch at {header}")
            span = (start, end, rest, timestamp_delta, offset_delta, key, body[at] != _NO_VALUE)
            found.append(new(RecordSpan, span))
            at = end
    except (IndexError, Malformed) as error:
        raise CorruptBatch(f"{error}, in the batch at offset {header.base_offset}") from error
    if at != len(body):
        raise CorruptBatch(f"{len(body) - at} bytes behind the last record of {header}")
    return found


def _opened(batch: Buffer, header: BatchHeader) -> bytes:
    """Its records, if it is intact. Raises `CorruptBatch`."""
    if not is_intact(batch, 0, header):
        raise CorruptBatch(f"the checksum of the batch at offset {header.base_offset} is wrong")
    return bytes(plain_records(batch, header))


@dataclass(slots=True)
class KeyMap:
    """The last offset of each key, in the batches from `end_offset` on that were added."""

    end_offset: int  # exclusive: of the last batch that was added
    bytes_max: int
    aborted: AbortedTransactions = field(default_factory=AbortedTransactions)
    offsets: dict[bytes, int] = field(default_factory=dict)
    _key_bytes: int = 0

    @property
    def is_full(self) -> bool:
        return self._key_bytes + _ENTRY_BYTES * len(self.offsets) >= self.bytes_max

    def add(self, batch: Buffer, header: BatchHeader) -> None:
        """Raises `CorruptBatch`. A batch is added as a whole, however full the map is by then."""
        if not (header.is_control or self.aborted.of(header)):
            offsets, base = self.offsets, header.base_offset
            first, key_bytes = self.end_offset - base, self._key_bytes
            for *_, offset_delta, key, _has_value in spans_in(_opened(batch, header), header):
                if key is not None and offset_delta >= first:
                    if key not in offsets:
                        key_bytes += len(key)
                    offsets[key] = base + offset_delta
            self._key_bytes = key_bytes
        self.end_offset = header.next_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaner:
    """Cleans batches of one segment, which ends at `end_offset`, by a map that is complete."""

    keys: KeyMap
    now_ms: int
    delete_retention_ms: int
    end_offset: int
    last_batches: AbstractSet[tuple[int, int]]  # (producer's id, last offset): their headers stay
    last_epochs: AbstractSet[tuple[int, int]] = frozenset()  # (producer's id, epoch): of markers
    unended: set[int] = field(default_factory=set)  # producers with batches of a transaction so far
    aborted: list[AbortedTransaction] = field(default_factory=list)  # whose markers stay for that

    def clean(self, batch: Buffer, header: BatchHeader) -> Buffer:
        """What is left of it: the batch itself, another one, or nothing. Raises `Malformed`.

        It is given the batches from the start of the log on, in their order.
        """
        if header.is_control:
            return self._clean_control(batch, header)
        if header.is_transactional:
            self.unended.add(header.producer_id)
        is_aborted = self.keys.aborted.of(header) is not None
        if header.base_offset >= self.keys.end_offset and not is_aborted:
            return batch
        body = _opened(batch, header)
        spans = spans_in(body, header)
        kept = [] if is_aborted else self._kept(spans, header)
        if not kept:
            is_last = header.next_offset == self.end_offset
            is_needed = is_last or (header.producer_id, header.last_offset) in self.last_batches
            if not is_needed or not spans:
                return batch if is_needed else b""
            return _emptied(header)
        horizon_ms = self._new_horizon_ms(kept, header)
        if horizon_ms is not None:
            return _with_horizon(body, kept, header, horizon_ms)
        return batch if len(kept) == len(spans) else _with_records(body, kept, header)

    def _clean_control(self, batch: Buffer, header: BatchHeader) -> Buffer:
        """Markers; there is no other control batch in the log of a partition."""
        body = _opened(batch, header)
        marker = read_marker(batch, header)
        if marker is None and header.record_count:
            return batch
        if marker is not None and header.producer_id in self.unended:
            self.unended.discard(header.producer_id)
            aborted = self.keys.aborted.of(header)
            if aborted is not None:
                self.aborted.append(aborted)
            return batch
        horizon_ms = header.delete_horizon_ms
        if marker is not None and horizon_ms is None:
            horizon_ms = self.now_ms + self.delete_retention_ms
            return _with_horizon(body, spans_in(body, header), header, horizon_ms)
        if horizon_ms is not None and horizon_ms > self.now_ms:
            return batch
        is_last = header.next_offset == self.end_offset
        is_needed = is_last or (header.producer_id, header.producer_epoch) in self.last_epochs
        if not is_needed:
            return b""
        return _emptied(header) if header.record_count else batch

    def _kept(self, spans: list[RecordSpan], header: BatchHeader) -> list[RecordSpan]:
        horizon_ms, base = header.delete_horizon_ms, header.base_offset
        may_delete = horizon_ms is not None and horizon_ms <= self.now_ms
        latest, first_unknown = self.keys.offsets.get, self.keys.end_offset - base
        return [
            span
            for span in spans
            if span.offset_delta >= first_unknown
            or (
                span.key is not None
                and base + span.offset_delta >= latest(span.key, -1)
                and (span.has_value or not may_delete)
            )
        ]

    def _new_horizon_ms(self, kept: list[RecordSpan], header: BatchHeader) -> int | None:
        """Set if there are tombstones, and nobody has said yet when they may go."""
        if header.delete_horizon_ms is not None:
            return None
        has_tombstones = not all(span.has_value for span in kept)
        return self.now_ms + self.delete_retention_ms if has_tombstones else None


def _emptied(header: BatchHeader) -> bytes:
    batch = bytearray(HEADER_BYTES)
    attributes = header.attributes & ~_COMPRESSION_AND_HORIZON
    write_header(
        batch, header._replace(attributes=attributes, base_timestamp_ms=-1, record_count=0)
    )
    return bytes(batch)


def _with_records(body: bytes, kept: list[RecordSpan], header: BatchHeader) -> Buffer:
    return _packed([body[span.start : span.end] for span in kept], kept, header, header)


def _with_horizon(
    body: bytes, kept: list[RecordSpan], header: BatchHeader, horizon_ms: int
) -> Buffer:
    """The horizon takes the place of the base timestamp, so each record counts from there."""
    records: list[bytes] = []
    for span in kept:
        timestamp_ms = header.base_timestamp_ms + span.timestamp_delta
        if header.is_log_append_time:
            timestamp_ms = header.max_timestamp_ms
        record = b"\0%b%b" % (varint(timestamp_ms - horizon_ms), body[span.rest : span.end])
        records += varint(len(record)), record
    attributes = header.attributes | _DELETE_HORIZON
    left = header._replace(attributes=attributes, base_timestamp_ms=horizon_ms)
    return _packed(records, kept, header, left)


def _packed(
    records: list[bytes], kept: list[RecordSpan], before: BatchHeader, left: BatchHeader
) -> Buffer:
    largest_ms = before.max_timestamp_ms
    if not before.is_log_append_time:
        largest_ms = before.base_timestamp_ms + max(span.timestamp_delta for span in kept)
    left = left._replace(max_timestamp_ms=largest_ms, record_count=len(kept))
    codec = before.compression
    return repacked(left, b"".join(records), codec, level=_LEVELS.get(codec, 0))
