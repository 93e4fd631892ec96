"""Elections over columns: the rules of `controller.metadata.election` for many partitions.

They hold for partitions of the common shape that need no eligible leader replicas, from the
metadata.version on that leaves the leader epoch alone when an ISR shrinks. The caller decides the
other rows (`Decided.is_columnar`, `Decided.sizes`) and unclean elections.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import numpy.typing as npt

from controller.metadata import blocks
from controller.metadata.blocks import Masks
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import (
    BITS_SET,
    NO_LEADER,
    UNCHANGED,
    PartitionColumns,
    Rows,
    slots_of,
)
from wire.metadata_records import RECOVERY_UNCHANGED
from wire.partition_block import TOGETHER, grouped
from wire.partition_columns import ISR_UNCHANGED, REPLICAS_MAX, PartitionChanges

__all__ = [
    "Acceptable",
    "Decided",
    "Hits",
    "block_of",
    "elected",
    "parts",
    "rows_of_topics",
    "without_member",
]

_NEAR = 1 << 16  # a table by broker id has this many entries at most

Hits = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """The decisions for some rows; only those of columnar rows mean anything."""

    now: PartitionColumns
    isr: Masks
    leaders: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.uint8]  # of the ISR, without a last member that is gone

    @property
    def is_columnar(self) -> Hits:
        return self.now.is_columnar


@dataclass(frozen=True, slots=True, eq=False)
class Acceptable:
    """For each broker and directory: could a replica there lead?"""

    broker_ids: npt.NDArray[np.int32]  # ascending
    table: Hits  # [broker, directory number]
    places: npt.NDArray[np.intp] | None  # of the ids from the first on; None if they lie far apart

    @classmethod
    def active(cls, image: MetadataImage) -> "Acceptable":
        return cls.of(image, {id_: broker.is_active for id_, broker in image.brokers.items()})

    @classmethod
    def of(cls, image: MetadataImage, is_up: Mapping[int, bool]) -> "Acceptable":
        ids = sorted(image.brokers)
        directories = image.partitions.directories
        table = np.zeros((len(ids), len(directories)), np.bool_)
        for row, broker_id in enumerate(ids):
            if is_up[broker_id]:
                broker = image.brokers[broker_id]
                table[row] = [broker.has_online(directory) for directory in directories]
        broker_ids, places = np.array(ids, np.int32), None
        if ids and ids[-1] - ids[0] < _NEAR:
            places = np.searchsorted(broker_ids, np.arange(ids[0], ids[-1] + 1))
        return cls(broker_ids, table, places)

    def holds(self, brokers: npt.NDArray[np.int32], directories: npt.NDArray[np.uint16]) -> Hits:
        if not len(self.broker_ids):
            return np.zeros(len(brokers), np.bool_)
        if self.places is None:
            place = np.searchsorted(self.broker_ids[:-1], brokers)
        else:
            place = self.places.take(brokers - self.broker_ids[0], mode="clip")
        hits: Hits = self.table[place, directories] & (self.broker_ids[place] == brokers)
        return hits


def parts(rows: Rows) -> Iterator[Rows]:
    """The rows in blocks that are small enough for the processor's caches."""
    for start in range(0, len(rows), TOGETHER):
        yield rows[start : start + TOGETHER]


def without_member(
    image: MetadataImage, rows: Rows, broker_id: int, acceptable: Acceptable
) -> Decided:
    """Take a broker out of the ISRs of `rows`. An ISR of it alone stays, without a leader."""
    now = image.partitions.columns(rows)
    target = now.isr & ~slots_of(now.replicas, broker_id)
    leaders = _leaders(now, target, acceptable)
    # The last member stays listed: it alone is known to hold every committed record.
    isr = np.where(target == 0, now.isr, target)
    return Decided(now, isr, leaders, BITS_SET[target])


def elected(
    image: MetadataImage, rows: Rows, acceptable: Acceptable, *, prefers_first: bool = False
) -> Decided:
    """Elect a leader in each of `rows` from the ISR as it is; the first replica, if preferred."""
    now = image.partitions.columns(rows)
    leaders = _leaders(now, now.isr, acceptable, prefers_first=prefers_first)
    return Decided(now, now.isr, leaders, BITS_SET[now.isr])


def _leaders(
    now: PartitionColumns, isr: Masks, acceptable: Acceptable, *, prefers_first: bool = False
) -> npt.NDArray[np.int32]:
    """The present leader if it can stay, else the first in-sync replica that can lead."""
    leaders = np.full(len(isr), NO_LEADER, np.int32)
    stays = np.zeros(len(isr), np.bool_)
    eligible = stays
    for slot in reversed(range(len(now.replicas))):
        brokers = now.replicas[slot]
        eligible = (isr >> np.uint8(slot) & np.uint8(1)).astype(np.bool_)
        eligible &= acceptable.holds(brokers, now.directories[slot])
        leaders = np.where(eligible, brokers, leaders)
        stays |= eligible & (brokers == now.leader)
    if prefers_first:
        stays &= ~eligible  # the last that was looked at is the first replica
    return np.where(stays, now.leader, leaders)


def block_of(decided: Decided, *, keep: Hits) -> tuple[PartitionChanges, ...]:
    """The changes of the rows to keep as one block, grouped by shape; empty if nothing changes."""
    now = decided.now
    shrinks = decided.isr != now.isr
    elects = decided.leaders != now.leader
    rows = np.flatnonzero(keep & (shrinks | elects))
    if not len(rows):
        return ()
    shrinks = shrinks[rows]
    isr, counts = blocks.isr_lists(now.replicas[:, rows], decided.isr[rows], REPLICAS_MAX)
    block = PartitionChanges(
        topic_ids=now.topic_id[rows],
        partition_ids=now.partition[rows],
        isr=isr,
        isr_counts=np.where(shrinks, counts, np.int8(ISR_UNCHANGED)),
        leaders=np.where(elects[rows], decided.leaders[rows], np.int32(UNCHANGED)),
        recovery_states=np.full(len(rows), RECOVERY_UNCHANGED, np.int8),
    )
    return (grouped(block),)


def rows_of_topics(image: MetadataImage, rows: Rows, topic_ids: Collection[UUID]) -> Rows:
    wanted = {topic_id.bytes for topic_id in topic_ids}
    ids = image.partitions.columns(rows).topic_id.tolist()
    return rows[np.fromiter((topic_id in wanted for topic_id in ids), np.bool_, len(ids))]
