"""Partition blocks against the table: which rows a block means, and its ISRs as masks.

A row of a block can be written into the columns at once if its partition is in them and its ISR
is in replica order. The others go the way of single records. Both ways mean the same.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controller.metadata.partitions import PartitionColumns, Rows
from wire.partition_columns import ISR_UNCHANGED, Int8s, Int32s, PartitionChanges

__all__ = ["WritableRows", "is_repeated", "isr_lists", "isr_masks", "writable_rows"]

Masks = npt.NDArray[np.uint8]
Hits = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class WritableRows:
    """What `TableDraft.change` needs, for every row of a block; `fits` says for which it holds."""

    fits: Hits
    isr: Masks


def writable_rows(block: PartitionChanges, now: PartitionColumns) -> WritableRows:
    """`now` is the state of the block's partitions, in its order."""
    masks, in_order = isr_masks(now.replicas, block.isr, block.isr_counts)
    unchanged = block.isr_counts == ISR_UNCHANGED
    return WritableRows(now.is_columnar & in_order, np.where(unchanged, now.isr, masks))


def is_repeated(rows: Rows, end_row: int) -> bool:
    """Does a row appear twice? Then the order of its changes matters."""
    seen = np.zeros(end_row, np.bool_)
    seen[rows] = True
    return int(np.count_nonzero(seen)) < len(rows)


def isr_masks(replicas: Int32s, isr: Int32s, counts: Int8s) -> tuple[Masks, Hits]:
    """Each ISR as a mask of replica slots, and whether it is in replica order.

    `replicas` is [slot, row], `isr` is [row, place] and holds `counts[row]` members.
    """
    rows = len(counts)
    masks = np.zeros(rows, np.uint8)
    in_order = np.ones(rows, np.bool_)
    before = np.full(rows, -1, np.int8)  # slot of the member before
    for place in range(int(counts.max(initial=0))):
        member = isr[:, place]
        here = np.full(rows, -1, np.int8)
        for slot, brokers in enumerate(replicas):
            here[brokers == member] = slot
        present = counts > place
        in_order &= (here > before) | ~present
        masks |= np.where(present & (here >= 0), 1 << np.maximum(here, 0), 0).astype(np.uint8)
        before = np.where(present, here, before)
    return masks, in_order


def isr_lists(replicas: Int32s, masks: Masks, places: int) -> tuple[Int32s, Int8s]:
    """The members that masks stand for, in replica order: [row, place] and how many."""
    members = np.full((len(masks), places), -1, np.int32)
    counts = np.zeros(len(masks), np.int8)
    for slot, brokers in enumerate(replicas):
        rows = np.flatnonzero(masks >> np.uint8(slot) & np.uint8(1))
        members[rows, counts[rows]] = brokers[rows]
        counts[rows] += 1
    return members, counts
