"""Whether two metadata images say the same, though each node has made its own."""

from uuid import UUID

import numpy as np

from controller.metadata.describe import describe, describe_broker
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import PartitionTable
from controller.metadata.topics import TopicImage

__all__ = ["say_the_same"]

_COLUMNS = ("leader", "leader_epoch", "partition_epoch", "isr", "recovering", "replicas")


def say_the_same(one: MetadataImage, other: MetadataImage) -> bool:
    """Column by column, which is fast; where that says no, all that can be said of both decides."""
    return _are_alike(one, other) or _said(one) == _said(other)


def _are_alike(one: MetadataImage, other: MetadataImage) -> bool:
    """A node that has loaded a snapshot keeps its partitions in other rows."""
    topics, others = one.topics.by_name, other.topics.by_name
    return (
        one._replace(at=other.at, topics=other.topics, partitions=other.partitions) == other
        and topics.keys() == others.keys()
        and len(one.partitions.chunks) == len(other.partitions.chunks) <= 1
        and all(
            _same_topic(topic, one.partitions, others[name], other.partitions)
            for name, topic in topics.items()
        )
    )


def _same_topic(
    one: TopicImage, its: PartitionTable, other: TopicImage, others: PartitionTable
) -> bool:
    chunk, against = its.chunks[0], others.chunks[0]
    if one.id != other.id or len(one.rows) != len(other.rows):
        return False
    if chunk.side or against.side:
        rows = zip(one.rows.tolist(), other.rows.tolist(), strict=True)
        if any(chunk.side.get(row) != against.side.get(others_row) for row, others_row in rows):
            return False
    directories = np.asarray([_number(its, each) for each in others.directories], np.uint16)
    return np.array_equal(
        chunk.directories[:, one.rows], directories[against.directories[:, other.rows]]
    ) and all(
        np.array_equal(
            getattr(chunk, column)[..., one.rows], getattr(against, column)[..., other.rows]
        )
        for column in _COLUMNS
    )


def _number(table: PartitionTable, directory: UUID) -> int:
    """One that no partition has, if the table has none of it."""
    known = table.directories
    return known.index(directory) if directory in known else len(known)


def _said(image: MetadataImage) -> dict[str, object]:
    """All that an image says, but for what depends on how a node came by it: the offset of control
    batches at its end, and where registrations stood before a snapshot took their place."""
    said = describe(image)
    brokers = [
        {**describe_broker(broker), "registered_at_offset": 0}
        for _, broker in sorted(image.brokers.items())
    ]
    return {**said, "offset": 0, "epoch": 0, "brokers": brokers}
