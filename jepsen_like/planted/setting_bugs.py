"""Planted bugs of what brokers and controllers do by settings, and of what they remember of
producers that have several batches in flight.
"""

from dataclasses import replace
from typing import Any

from broker.partition import appends, idempotence
from broker.partition.idempotence import last_sequence
from broker.partition.local_log import LocalLog
from broker.partition.partition import Partition
from broker.partition.producer_states import ProducerStates
from jepsen_like.planted.planting import plant_in
from quorum.core.producers import ProducerBatch, ProducerEntry
from wire.batch import BatchHeader

_take = appends.take
_retain = LocalLog.retain
_truncated = ProducerStates.truncated


# --- settings -------------------------------------------------------------------------------


@plant_in("setting", LocalLog, "retain", seeds_max=40, found_at=0)
def lets_go_of_what_is_not_exposed(
    self: LocalLog, *, since_ms: int | None, bytes_max: int | None
) -> None:
    """Breaks: retention lets go of what is exposed only."""
    before, self.high_watermark = self.high_watermark, self.end_offset
    _retain(self, since_ms=since_ms, bytes_max=bytes_max)
    self.high_watermark = before


@plant_in("setting", appends, "take", seeds_max=40, found_at=9)
def takes_batches_of_any_size(
    partition: Partition, records: bytes | None, **known: Any
) -> appends.Taken:
    """Breaks: no batch is larger than max.message.bytes."""
    before = partition.settings
    partition.settings = replace(before, max_message_bytes=1 << 30)
    try:
        return _take(partition, records, **known)
    finally:
        partition.settings = before


# --- batches in flight ------------------------------------------------------------------------


@plant_in("setting", idempotence, "find_duplicate", seeds_max=60, found_at=48)
def knows_the_last_batch_only(entry: ProducerEntry, header: BatchHeader) -> ProducerBatch | None:
    """Breaks: each of the last five batches of a producer is known again (KIP-98)."""
    return entry.batches[-1] if last_sequence(entry) == header.last_sequence else None


# A replica has to cut its log so that two batches of a producer stay, to be elected before another
# batch comes, and to be asked for the first of the two again: random runs do not come to that, the
# schedule `batches_in_flight_are_cut` does.


@plant_in("setting", ProducerStates, "truncated")
def keeps_one_batch_of_a_producer(self: ProducerStates, end_offset: int) -> None:
    """Breaks: a truncation leaves the batches that it does not take (KIP-98)."""
    _truncated(self, end_offset)
    for entry in self.entries():
        self._entries[entry.producer_id] = entry._replace(batches=entry.batches[-1:])
