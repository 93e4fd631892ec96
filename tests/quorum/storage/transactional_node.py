"""A node whose compacted log holds transactions, and a consumer that reads committed records."""

from dataclasses import replace as with_fields
from itertools import chain

from jepsen_like.clients.readable import readable
from quorum.core.cleaning import Clean
from quorum.core.effects import Append, Read, ReadDone
from quorum.core.producers import observe
from tests.quorum.keyed_batches import Keyed, keyed_batch, read_records
from tests.quorum.storage.compacted_node import Node
from tests.quorum.transactional import ending, opened
from wire.batch import Record, headers, read_header
from wire.message import replace
from wire.messages.fetching import AbortedTransaction, FetchedPartition
from wire.transaction_markers import read_marker

__all__ = ["TransactionalNode"]


class TransactionalNode(Node):
    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.committed: dict[int, Record] = {}  # by offset, also what is not there any more
        self.pending: dict[int, list[Record]] = {}

    def write(self, producer_id: int, records: list[Keyed]) -> None:
        known = self.producers.get(producer_id)
        sequence = known.batches[-1].last_sequence + 1 if known and known.batches else 0
        batch = keyed_batch(
            self.end_offset,
            records,
            timestamp_ms=self.now_ms,
            producer=(producer_id, 0, sequence),
            is_transactional=True,
        )
        self.pending.setdefault(producer_id, []).extend(read_records(batch))
        self._put(batch)

    def end(self, producer_id: int, *, commits: bool) -> None:
        records = self.pending.pop(producer_id, [])
        if commits:
            self.committed |= {record.offset: record for record in records}
        self._put(ending(self.end_offset, producer_id, commits=commits))

    def write_plain(self, records: list[Keyed]) -> None:
        batch = keyed_batch(self.end_offset, records, timestamp_ms=self.now_ms)
        self.committed |= {record.offset: record for record in read_records(batch)}
        self._put(batch)

    def _put(self, batch: bytes) -> None:
        header = read_header(batch)
        marker = read_marker(batch, header) if header.is_control else None
        aborted = observe(self.producers, header, marker)
        self.end_offset = header.next_offset
        told = () if aborted is None else (aborted,)
        effect = Append(log=self.log, token=self.token(), records=batch, aborted=told)
        self.storage.perform(effect)
        self.storage.take_events()

    @property
    def last_stable_offset(self) -> int:
        return min(opened(self.producers.values()).values(), default=self.end_offset)

    def order(self, **rules: float) -> Clean:
        producers = self.producers
        self.high_watermark = self.last_stable_offset
        self.producers = {each: entry for each, entry in producers.items() if entry.batches}
        effect = super().order(**rules)
        epochs = [(e.producer_id, e.producer_epoch) for e in producers.values() if not e.batches]
        self.producers = producers
        return replace(effect, order=with_fields(effect.order, last_epochs=frozenset(epochs)))

    # --- a consumer -----------------------------------------------------------------------------

    def read_committed(self) -> list[Record]:
        """As Kafka's consumer does (CompletedFetch.nextFetchedRecord)."""
        found: list[Record] = []
        offset = self.start_offset
        while offset < self.last_stable_offset:
            effect = Read(
                log=self.log,
                token=self.token(),
                start_offset=offset,
                end_offset=self.last_stable_offset,
                bytes_max=300,
                wants_aborted=True,
            )
            (done,) = [each for each in self.do(effect) if isinstance(each, ReadDone)]
            if not done.records:
                break
            fetched = FetchedPartition(
                partition_index=0,
                high_watermark=self.end_offset,
                aborted_transactions=tuple(
                    AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                    for each in done.aborted
                ),
                records=done.records,
            )
            found += chain.from_iterable(records for _, records in readable(fetched))
            *_, (_, last) = headers(done.records)
            offset = last.next_offset
        return found
