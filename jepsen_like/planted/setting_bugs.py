"""Planted bugs of what brokers and controllers do by settings, and of what they remember of
producers that have several batches in flight.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from broker.partition import appends, idempotence, isr
from broker.partition.idempotence import ProducerStates, last_sequence
from broker.partition.isr import IsrState
from broker.partition.local_log import LocalLog
from broker.partition.partition import Partition
from broker.replicas import Replicas
from controller.metadata import configs
from controller.metadata.configs import NO_STATIC
from controller.metadata.delta import MetadataDelta
from controller.metadata.image import MetadataImage
from jepsen_like.planted.planting import Plants, plant_in
from quorum.core.producers import ProducerBatch, ProducerEntry
from wire.batch import BatchHeader

__all__ = ["SETTING_PLANTS"]

SETTING_PLANTS: Plants = {}

# What a plant calls of the rule that it replaces.
_take = appends.take
_retain = LocalLog.retain
_truncated = ProducerStates.truncated


# --- settings -------------------------------------------------------------------------------


@plant_in(SETTING_PLANTS, LocalLog, "retain", seeds_max=40)
def lets_go_of_what_is_not_exposed(
    self: LocalLog, *, since_ms: int | None, bytes_max: int | None
) -> None:
    """Breaks: retention lets go of what is exposed only."""
    before, self.high_watermark = self.high_watermark, self.end_offset
    _retain(self, since_ms=since_ms, bytes_max=bytes_max)
    self.high_watermark = before


@plant_in(SETTING_PLANTS, Replicas, "reconfigure", seeds_max=40)
def goes_by_the_settings_of_before(self: Replicas, delta: MetadataDelta, now_ms: int) -> None:
    """Breaks: a setting that has changed holds from then on."""


@plant_in(SETTING_PLANTS, appends, "take", seeds_max=40)
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


@plant_in(SETTING_PLANTS, configs, "unclean_election_enabled", seeds_max=20)
def elects_uncleanly_unasked(
    image: MetadataImage, topic: str, static: Mapping[str, str] = NO_STATIC
) -> bool:
    """Breaks: nobody from outside ISR and ELR leads unless the topic allows it."""
    return True


@plant_in(SETTING_PLANTS, isr, "out_of_sync", seeds_max=20)
def keeps_whoever_lags(state: IsrState, followers: Any, **known: Any) -> tuple[int, ...]:
    """Breaks: who lags for replica.lag.time.max.ms is to leave the ISR."""
    return ()


# --- batches in flight ------------------------------------------------------------------------


@plant_in(SETTING_PLANTS, idempotence, "find_duplicate", seeds_max=40)
def knows_the_last_batch_only(entry: ProducerEntry, header: BatchHeader) -> ProducerBatch | None:
    """Breaks: each of the last five batches of a producer is known again (KIP-98)."""
    return entry.batches[-1] if last_sequence(entry) == header.last_sequence else None


# A replica has to cut its log so that two batches of a producer stay, to be elected before another
# batch comes, and to be asked for the first of the two again: random runs do not come to that, the
# schedule `batches_in_flight_are_cut` does.


@plant_in(SETTING_PLANTS, ProducerStates, "truncated")
def keeps_one_batch_of_a_producer(self: ProducerStates, end_offset: int) -> None:
    """Breaks: a truncation leaves the batches that it does not take (KIP-98)."""
    _truncated(self, end_offset)
    for entry in self.entries():
        self._entries[entry.producer_id] = entry._replace(batches=entry.batches[-1:])
