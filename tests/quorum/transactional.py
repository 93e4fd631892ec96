"""What the tests of storages share of transactions: a log, and what is true of it."""

from collections.abc import Iterable

from quorum.core.producers import AbortedTransaction, ProducerEntry, observe
from wire.batch import BatchHeader, Record, assign, build_batch, headers, read_header
from wire.transaction_markers import Marker, build_marker, read_marker

__all__ = ["Transactions", "data", "ending", "extent", "opened", "overlapping"]


def data(
    base_offset: int,
    producer_id: int,
    *,
    epoch: int = 0,
    sequence: int = 0,
    size: int = 10,
    keys: tuple[bytes, ...] = (b"k",),
) -> bytes:
    return build_batch(
        [Record(key=key, value=b"x" * size) for key in keys],
        timestamp_ms=1000,
        base_offset=base_offset,
        leader_epoch=1,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )


def ending(base_offset: int, producer_id: int, *, commits: bool = False, epoch: int = 0) -> bytes:
    marker = Marker(producer_id, epoch, commits, coordinator_epoch=0)
    batch = build_marker(marker, timestamp_ms=1000)
    return assign(batch, base_offset=base_offset, leader_epoch=1)


class Transactions:
    """What the batches of a log say, by what a core would know of all of them."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self._sequences: dict[int, int] = {}

    @property
    def end_offset(self) -> int:
        return read_header(self.batches[-1]).next_offset if self.batches else 0

    def write(self, producer_id: int, *, size: int = 10) -> bytes:
        sequence = self._sequences.get(producer_id, 0)
        self._sequences[producer_id] = sequence + 1
        self.batches.append(data(self.end_offset, producer_id, sequence=sequence, size=size))
        return self.batches[-1]

    def end(self, producer_id: int, *, commits: bool = False) -> bytes:
        self.batches.append(ending(self.end_offset, producer_id, commits=commits))
        return self.batches[-1]

    def truncate(self, end_offset: int) -> None:
        self.batches = [each for each in self.batches if read_header(each).last_offset < end_offset]

    def read_back(self) -> tuple[dict[int, ProducerEntry], list[AbortedTransaction]]:
        producers: dict[int, ProducerEntry] = {}
        aborted = []
        for batch in self.batches:
            header = read_header(batch)
            marker = read_marker(batch, header) if header.is_control else None
            ended = observe(producers, header, marker)
            if ended is not None:
                aborted.append(ended)
        return producers, aborted

    def aborted_by(self, batch: bytes) -> tuple[AbortedTransaction, ...]:
        """What an append of it says."""
        header = read_header(batch)
        if not header.is_control:
            return ()
        return tuple(e for e in self.read_back()[1] if e.last_offset == header.last_offset)


def opened(producers: Iterable[ProducerEntry]) -> dict[int, int]:
    """The first offset of each open transaction."""
    return {each.producer_id: each.open_since for each in producers if each.open_since >= 0}


def overlapping(
    aborted: Iterable[AbortedTransaction], start_offset: int, end_offset: int
) -> set[AbortedTransaction]:
    return {
        each
        for each in aborted
        if each.first_offset < end_offset and each.last_offset >= start_offset
    }


def extent(records: bytes) -> tuple[int, int]:
    """From the first offset to the end of batches that were read."""
    found: list[BatchHeader] = [header for _, header in headers(records)]
    return found[0].base_offset, found[-1].next_offset
