"""What two images differ in, whatever rows their partitions have; in columns, for a million.

Source: `controller.metadata.describe` says what an image holds.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from controller.metadata.image import MetadataImage, ResourceType
from controller.metadata.partitions import CHUNK_BITS, NOBODY, PartitionColumns, Rows
from controller.metadata.topics import NO_ROW
from quorumlab.inspection.tree import Change, differences, tree_of

__all__ = ["first_difference", "image_differences"]


def first_difference(one: MetadataImage, other: MetadataImage) -> Change | None:
    """None if there is none."""
    return next(image_differences(one, other), None)


def image_differences(one: MetadataImage, other: MetadataImage) -> Iterator[Change]:
    """Compares their trees, but for topics that are the same."""
    topics = _changed_topics(one.stable, other.stable)
    return differences(tree_of(one, topics=topics), tree_of(other, topics=topics))


def _changed_topics(one: MetadataImage, other: MetadataImage) -> set[str]:
    """By name: those that one has and the other has not, and those that are not alike."""
    ours, theirs = one.topics.by_name, other.topics.by_name
    found = set(ours) ^ set(theirs)
    for name in set(ours) & set(theirs):
        is_alike = (
            ours[name].id == theirs[name].id
            and ours[name].partition_count == theirs[name].partition_count
            and one.config(ResourceType.TOPIC, name) == other.config(ResourceType.TOPIC, name)
        )
        if not is_alike:
            found.add(name)
    for number in range(len(one.partitions.chunks)):
        for row in _unlike_rows(one, other, number).tolist():
            place = one.partitions.place(row)
            assert place is not None, row
            topic = one.topic_by_id(place[0])
            assert topic is not None, place
            found.add(topic.name)
    return found


def _unlike_rows(one: MetadataImage, other: MetadataImage, number: int) -> Rows:
    """The rows of a chunk of the first image that the second lacks, or has otherwise."""
    chunk = one.partitions.chunks[number]
    if number < len(other.partitions.chunks) and chunk is other.partitions.chunks[number]:
        return np.empty(0, np.int32)
    places = np.flatnonzero(chunk.partition >= 0)
    rows = (places + (number << CHUNK_BITS)).astype(np.int32)
    theirs = other.topics.rows_of(chunk.topic_id[places], chunk.partition[places])
    known = np.flatnonzero(theirs != NO_ROW)
    ours_columns, their_columns = (
        one.partitions.columns(rows[known]),
        other.partitions.columns(theirs[known]),
    )
    both = ours_columns.is_columnar & their_columns.is_columnar
    alike = both & _equal(ours_columns, their_columns, _directory_numbers(one, other))
    for place in np.flatnonzero(~both).tolist():
        at, there = int(rows[known[place]]), int(theirs[known[place]])
        alike[place] = one.partitions.state(at) == other.partitions.state(there)
    is_unlike = np.ones(len(rows), np.bool_)
    is_unlike[known[alike]] = False
    return rows[is_unlike]


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
