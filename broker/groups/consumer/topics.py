"""The topics that a group reads: those that exist, those that match patterns, and their hash.

The hash says whether topics came, went or grew: then the group's epoch is raised. It is not
Kafka's: a coordinator that takes over from one of the other kind raises the epoch once.

Source: KIP-848; Kafka's ModernGroup.computeMetadataHash.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple, Protocol
from uuid import UUID

__all__ = ["TopicMetadata", "Topics", "existing", "metadata_hash"]


class TopicMetadata(NamedTuple):
    id: UUID
    partition_count: int


class Topics(Protocol):
    """The metadata as it is now."""

    @property
    def version(self) -> int: ...
    @property
    def snapshot(self) -> object: ...  # an equal one while no topic has come, gone or grown
    def metadata(self, name: str) -> TopicMetadata | None: ...
    def name_of(self, topic_id: UUID) -> str | None: ...
    def matching(self, pattern: str, now_ms: int) -> tuple[str, ...] | None: ...  # None: not yet


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """Returns 64 bits, with a sign; 0 if none of the topics exists."""
    digest = blake2b(digest_size=8)
    has_any = False
    for name in sorted(names):
        found = topics.metadata(name)
        if found is not None:
            has_any = True
            digest.update(f"{name}\0{found.id.hex}{found.partition_count}\0".encode())
    return int.from_bytes(digest.digest(), "big", signed=True) if has_any else 0


def existing(names: Iterable[str], topics: Topics) -> Mapping[UUID, int]:
    """Their partitions' numbers, by id."""
    found = (topics.metadata(name) for name in names)
    return {topic.id: topic.partition_count for topic in found if topic is not None}
