"""Are two images the same, whatever rows their partitions have? In columns, for a million of them.

Source: `controller.metadata.describe` says what an image holds.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from controller.metadata.describe import fingerprint
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import CHUNK_BITS, NOBODY, PartitionColumns, Rows
from controller.metadata.topics import NO_ROW, Topics
from quorumlab.inspection.tree import Change, differences, tree_of

__all__ = ["first_difference"]


def first_difference(one: MetadataImage, other: MetadataImage) -> Change | None:
    """None if there is none."""
    if _is_same(one, other):
        return None
    return next(differences(tree_of(one), tree_of(other)), None)


def _is_same(one: MetadataImage, other: MetadataImage) -> bool:
    names = [
        {topic.id: topic.name for topic in each.topics.by_id.values()} for each in (one, other)
    ]
    without = [fingerprint(replace(each, topics=Topics())) for each in (one, other)]
    return (
        names[0] == names[1]
        and without[0] == without[1]
        and len(one.partitions) == len(other.partitions)
        and all(_are_same_rows(one, other, number) for number in range(len(one.partitions.chunks)))
    )


def _are_same_rows(one: MetadataImage, other: MetadataImage, number: int) -> bool:
    """Those of a chunk of the first image, and where the second has them."""
    chunk = one.partitions.chunks[number]
    places = np.flatnonzero(chunk.partition >= 0)
    rows = (places + (number << CHUNK_BITS)).astype(np.int32)
    theirs = other.topics.rows_of(chunk.topic_id[places], chunk.partition[places])
    if (theirs == NO_ROW).any():
        return False
    ours_columns, their_columns = one.partitions.columns(rows), other.partitions.columns(theirs)
    both = ours_columns.is_columnar & their_columns.is_columnar
    unequal = both & ~_equal(ours_columns, their_columns, _directory_numbers(one, other))
    return not unequal.any() and all(
        one.partitions.state(rows[place]) == other.partitions.state(theirs[place])
        for place in np.flatnonzero(~both).tolist()
    )


def _directory_numbers(one: MetadataImage, other: MetadataImage) -> npt.NDArray[np.int64]:
    """For each directory of the second table its number in the first, -1 where it has none."""
    numbers = {directory: number for number, directory in enumerate(one.partitions.directories)}
    return np.array([numbers.get(each, -1) for each in other.partitions.directories], np.int64)


def _equal(
    one: PartitionColumns, other: PartitionColumns, directory_numbers: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    equal: npt.NDArray[np.bool_] = (
        (one.isr == other.isr)
        & (one.leader == other.leader)
        & (one.leader_epoch == other.leader_epoch)
        & (one.partition_epoch == other.partition_epoch)
        & (one.recovering == other.recovering)
    )
    for slot in range(max(len(one.replicas), len(other.replicas))):
        ours, theirs = _slot(one, slot), _slot(other, slot)
        equal &= ours == theirs
        if slot < min(len(one.replicas), len(other.replicas)):
            same = one.directories[slot] == directory_numbers[other.directories[slot]]
            equal &= same | (ours == NOBODY)
    return equal


def _slot(columns: PartitionColumns, slot: int) -> Rows:
    nobody = np.full(len(columns.partition), NOBODY, np.int32)
    return columns.replicas[slot] if slot < len(columns.replicas) else nobody
