"""Partitions as they begin, in bulk: thousands in one decision, which must not stop the node.

Placement repeats itself, so that few of the partitions of a topic differ in more than their number:
what those are is found once for each, and the others are copies of its row.

Source: KIP-631; KIP-858 for directories.
"""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np

from controller.metadata import placement
from controller.metadata.changes import Change
from controller.metadata.image import MetadataImage
from wire.metadata_records import PartitionRecord
from wire.partition_block import grouped
from wire.partition_columns import NewPartitions, take

__all__ = ["Replicas", "new_partitions"]

_BLOCK_RECORDS_MIN = 64  # fewer are as fast as single records

Replicas = tuple[int, ...]


def new_partitions(
    image: MetadataImage, topic_id: UUID, replicas: Sequence[Replicas], *, first: int = 0
) -> list[Change]:
    """One for each of `replicas`, numbered from `first`; many of them as one block."""
    if len(replicas) < _BLOCK_RECORDS_MIN:
        return list(_records(image, topic_id, replicas, first))
    places = {brokers: place for place, brokers in enumerate(dict.fromkeys(replicas))}
    models = _records(image, topic_id, tuple(places), first)
    if not all(map(NewPartitions.fits, models)):
        return list(_records(image, topic_id, replicas, first))
    which = np.fromiter((places[brokers] for brokers in replicas), np.intp, len(replicas))
    block = take(NewPartitions.from_records(models), which)
    numbers = np.arange(first, first + len(replicas), dtype=np.int32)
    return [grouped(replace(block, partition_ids=numbers))]


def _records(
    image: MetadataImage, topic_id: UUID, replicas: Sequence[Replicas], first: int
) -> list[PartitionRecord]:
    return [
        _new_partition(image, topic_id, number, brokers)
        for number, brokers in enumerate(replicas, first)
    ]


def _new_partition(
    image: MetadataImage, topic_id: UUID, number: int, replicas: Replicas
) -> PartitionRecord:
    """In sync is who is up, and the first of them leads."""
    isr = tuple(replica for replica in replicas if image.is_active(replica))
    assert isr, f"no replica of {replicas} could lead"
    directories = tuple(placement.directory_on(image.brokers.get(r)) for r in replicas)
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=directories if image.has_directories else (),
    )
