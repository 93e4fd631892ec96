"""What the tests of compaction share: batches of keyed records, and what a reader makes of them."""

from collections.abc import Iterable, Sequence

from wire.batch import Compression, Record, build_batch, headers, read_header, records_of, repacked

__all__ = ["Keyed", "keyed_batch", "read_records", "values_of"]

Keyed = tuple[bytes | None, bytes | None]  # key and value


def keyed_batch(
    base_offset: int,
    records: Sequence[Keyed],
    *,
    codec: Compression = Compression.NONE,
    timestamp_ms: int = 1000,
    producer: tuple[int, int, int] = (-1, -1, -1),
    epoch: int = 1,
    is_transactional: bool = False,
) -> bytes:
    """Each record is a millisecond younger than the one before."""
    producer_id, producer_epoch, base_sequence = producer
    plain = build_batch(
        [
            Record(key=key, value=value, timestamp_ms=timestamp_ms + place)
            for place, (key, value) in enumerate(records)
        ],
        timestamp_ms=timestamp_ms,
        base_offset=base_offset,
        leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
    )
    header = read_header(plain)
    return bytes(repacked(header, plain[-header.size_bytes + 61 :], codec, level=1))


def read_records(batches: bytes) -> list[Record]:
    return [
        record
        for position, header in headers(batches)
        for record in records_of(batches[position : position + header.size_bytes])
    ]


def values_of(records: Iterable[Record]) -> dict[bytes, bytes]:
    """The last value of each key that has one."""
    found: dict[bytes, bytes] = {}
    for record in records:
        assert record.key is not None
        found.pop(record.key, None)
        if record.value is not None:
            found[record.key] = record.value
    return found
