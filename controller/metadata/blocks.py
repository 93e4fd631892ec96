"""Blocks of partition records and the rows of the table: each as the other, and ISRs as masks.

A row of a block is written into the columns at once if its partition is in them and its ISR is in
replica order; other rows are applied as single records. Both come to the same image.
"""

from uuid import UUID

import numpy as np
import numpy.typing as npt

from controller.metadata.draft import TableDraft
from controller.metadata.partitions import BITS_SET, NOBODY, PartitionColumns, Places, slots_of
from wire.partition_columns import (
    ISR_UNCHANGED,
    REPLICAS_MAX,
    TOPIC_ID,
    Int8s,
    Int32s,
    NewPartitions,
    PartitionChanges,
    Uuids,
)

__all__ = [
    "Masks",
    "directory_numbers",
    "has_repeated_partition",
    "isr_lists",
    "new_rows",
    "partitions_of_rows",
    "writable_rows",
]

Masks = npt.NDArray[np.uint8]
Hits = npt.NDArray[np.bool_]
# [place, mask]: the slot of the mask's first bit, of its second ...; 0 where it has no more.
_SLOTS = np.array(
    [([slot for slot in range(8) if mask >> slot & 1] + [0] * 8)[:8] for mask in range(256)],
    np.intp,
).T.copy()


def writable_rows(
    block: PartitionChanges, order: Places, replicas: Int32s, isr: Masks
) -> tuple[Hits, Masks]:
    """Which rows `TableDraft.change` may write, and the ISRs after the changes, as masks.

    All in `order`, which names rows of the block; `replicas` [slot, row] and `isr` are those of
    the block's partitions now.
    """
    counts = block.isr_counts[order]
    members = block.isr.T[: counts.max(initial=0)].take(order, axis=1)
    masks, in_order = isr_masks(replicas, members, counts)
    return (replicas[0] != NOBODY) & in_order, np.where(counts == ISR_UNCHANGED, isr, masks)


def directory_numbers(block: NewPartitions, draft: TableDraft) -> npt.NDArray[np.uint16] | None:
    """The numbers of a block's directories, [row, place]; None if the table has no more."""
    # Beyond a row's own directories is padding; a row without any has "migrating".
    numbers = np.zeros((len(block), REPLICAS_MAX), np.uint16)
    for place in range(int(block.directory_counts.max(initial=0))):
        rows = np.flatnonzero(block.directory_counts > place)
        found = _numbers_of(block.directories[rows, place], draft)
        if found is None:
            return None
        numbers[rows, place] = found
    return numbers


def _numbers_of(directories: Uuids, draft: TableDraft) -> npt.NDArray[np.uint16] | None:
    """Look each distinct directory up once: a cluster has few."""
    halves = np.ascontiguousarray(directories).view(np.uint64).reshape(-1, 2)[:, 1]
    _, first, which = np.unique(halves, return_index=True, return_inverse=True)
    distinct = directories[first]
    if not np.array_equal(distinct[which], directories):  # half an id does not tell them apart
        distinct, which = directories, np.arange(len(directories))
    numbers = draft.directory_numbers(UUID(bytes=bytes(value)) for value in distinct)
    return None if numbers is None else np.array(numbers, np.uint16)[which]


def has_repeated_partition(block: NewPartitions) -> bool:
    places = zip(block.topic_ids.tolist(), block.partition_ids.tolist(), strict=True)
    return len(set(places)) < len(block)


def new_rows(
    block: NewPartitions, numbers: npt.NDArray[np.uint16]
) -> tuple[PartitionColumns, Hits]:
    """The rows that columns can hold, and which rows of the block they are."""
    slots = max(1, int(block.replica_counts.max(initial=1)))
    places = np.arange(slots, dtype=np.int8)
    used = places < block.replica_counts[:, None]
    replicas = np.where(used, block.replicas[:, :slots], np.int32(NOBODY)).T
    isr, in_order = isr_masks(replicas, block.isr.T, block.isr_counts)
    fits = in_order & ~_has_repeated_replica(replicas) & (block.replica_counts > 0)
    fits &= (block.directory_counts == 0) | (block.directory_counts == block.replica_counts)
    fits &= ((replicas >= 0) | ~used.T).all(axis=0)
    rows = np.flatnonzero(fits)
    made = PartitionColumns(
        topic_id=block.topic_ids[rows],
        partition=block.partition_ids[rows],
        replicas=replicas[:, rows],
        directories=numbers[rows, :slots].T,
        isr=isr[rows],
        leader=block.leaders[rows],
        leader_epoch=block.leader_epochs[rows],
        partition_epoch=block.partition_epochs[rows],
        recovering=np.zeros(len(rows), np.bool_),
    )
    return made, fits


def partitions_of_rows(now: PartitionColumns, directories: Uuids | None) -> NewPartitions:
    """Rows of the columns, all recovered, as new partitions: the inverse of `new_rows`.

    `directories` is the list of the table, as bytes; None leaves them out.
    """
    slots, count = now.replicas.shape
    replicas = np.full((count, REPLICAS_MAX), NOBODY, np.int32)
    replicas[:, :slots] = now.replicas.T
    replica_counts = (now.replicas != NOBODY).sum(axis=0).astype(np.int8)
    isr, isr_counts = isr_lists(now.replicas, now.isr, REPLICAS_MAX)
    placed = np.zeros((count, REPLICAS_MAX), TOPIC_ID)
    if directories is not None:
        placed[:, :slots] = directories[now.directories.T]
    return NewPartitions(
        topic_ids=now.topic_id,
        partition_ids=now.partition,
        replicas=replicas,
        replica_counts=replica_counts,
        isr=isr,
        isr_counts=isr_counts,
        leaders=now.leader,
        leader_epochs=now.leader_epoch,
        partition_epochs=now.partition_epoch,
        directories=placed,
        directory_counts=np.zeros(count, np.int8) if directories is None else replica_counts,
    )


def _has_repeated_replica(replicas: Int32s) -> Hits:
    """Is a broker in two slots of a row? No sane controller writes that."""
    repeated = np.zeros(replicas.shape[1], np.bool_)
    for slot in range(1, len(replicas)):
        for before in range(slot):
            same = replicas[slot] == replicas[before]
            repeated |= same & (replicas[slot] != NOBODY)
    return repeated


def isr_masks(replicas: Int32s, isr: Int32s, counts: Int8s) -> tuple[Masks, Hits]:
    """Each ISR as a mask of replica slots, and whether it is in replica order.

    `replicas` is [slot, row], `isr` is [place, row] and holds `counts[row]` members.
    """
    masks = np.zeros(len(counts), np.uint8)
    in_order = np.ones(len(counts), np.bool_)
    for place in range(int(counts.max(initial=0))):
        members, present = isr[place], counts > place
        bits = slots_of(replicas, members) * (present & (members >= 0))
        in_order &= (bits > masks) | ~present  # a replica, and in a higher slot than all before
        masks |= bits
    return masks, in_order


def isr_lists(replicas: Int32s, masks: Masks, places: int) -> tuple[Int32s, Int8s]:
    """The members of each mask in replica order, as [row, place], and their counts."""
    members = np.full((places, len(masks)), NOBODY, np.int32)
    counts = BITS_SET[masks]
    flat, rows = replicas.ravel(), np.arange(len(masks))
    for place in range(min(len(replicas), int(counts.max(initial=0)))):
        found = flat[_SLOTS[place][masks] * len(masks) + rows]
        members[place] = np.where(counts > place, found, np.int32(NOBODY))
    return members.T, counts.view(np.int8)
