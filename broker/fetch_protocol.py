"""Leader and follower share this vocabulary of Fetch: session epochs, and keys of partitions.

Source: KIP-227 (sessions), KIP-516 (topic ids); Kafka's FetchMetadata and ListOffsetsRequest.
"""

from typing import NamedTuple
from uuid import UUID

from wire.primitives import INT32_MAX

__all__ = [
    "EARLIEST",
    "FINAL_EPOCH",
    "INITIAL_EPOCH",
    "LATEST",
    "NO_SESSION",
    "PartitionKey",
    "next_epoch",
]

NO_SESSION = 0
INITIAL_EPOCH = 0  # start a session
FINAL_EPOCH = -1  # end it, or have none

# The timestamps by which ListOffsets asks where a log ends or begins.
LATEST = -1
EARLIEST = -2


class PartitionKey(NamedTuple):
    """A request names a partition by topic name or, from version 13 on, by topic id."""

    topic: str
    topic_id: UUID
    partition: int


def next_epoch(epoch: int) -> int:
    """The epoch of the next request of a session."""
    return 1 if epoch == INT32_MAX else epoch + 1
