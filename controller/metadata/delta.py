"""What some batches changed in an image: which things, not how.

For those who obey the metadata log: a broker looks at these things in the new image and leaves
the rest alone. Deltas of successive batches add up with `then`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np

from controller.metadata.partitions import NO_ROWS, PartitionTable, Rows
from controller.metadata.topics import TopicImage

__all__ = ["SECTIONS", "ConfigResource", "MetadataDelta", "distinct"]

ConfigResource = tuple[int, str]  # resource type, resource name
SECTIONS = ("brokers", "controllers", "configs", "features")  # mappings of an image, by key


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetadataDelta:
    """Each thing is listed once, in the order in which it first changed.

    `rows_changed` holds the rows, in the newer image, of partitions that were created or changed,
    those of a block by number; some may have been freed again since. Partitions of deleted topics
    are not listed.
    """

    topics_created: tuple[UUID, ...] = ()
    topics_deleted: tuple[TopicImage, ...] = ()  # as they were; their rows are no longer theirs
    rows_changed: Rows = field(default_factory=lambda: NO_ROWS)
    brokers_changed: tuple[int, ...] = ()  # registered, changed or unregistered
    controllers_changed: tuple[int, ...] = ()
    configs_changed: tuple[ConfigResource, ...] = ()
    features_changed: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (
            self.topics_created
            or self.topics_deleted
            or len(self.rows_changed)
            or self.brokers_changed
            or self.controllers_changed
            or self.configs_changed
            or self.features_changed
        )

    def partitions_changed(self, table: PartitionTable) -> Iterator[tuple[UUID, int]]:
        """Topic id and index of each changed partition; `table` is that of the newer image."""
        return filter(None, table.places(self.rows_changed))

    def then(self, later: "MetadataDelta") -> "MetadataDelta":
        if later.is_empty:
            return self
        if self.is_empty:
            return later
        created_here = dict.fromkeys(self.topics_created)
        passing = {topic.id for topic in later.topics_deleted if topic.id in created_here}
        created = (*self.topics_created, *later.topics_created)
        deleted = (t for t in later.topics_deleted if t.id not in passing)
        return MetadataDelta(
            topics_created=tuple(topic_id for topic_id in created if topic_id not in passing),
            topics_deleted=(*self.topics_deleted, *deleted),
            rows_changed=distinct(np.concatenate([self.rows_changed, later.rows_changed])),
            **{
                name: tuple(dict.fromkeys((*getattr(self, name), *getattr(later, name))))
                for name in (f"{section}_changed" for section in SECTIONS)
            },
        )


def distinct(rows: Rows) -> Rows:
    """Each row once, at the place of its first appearance."""
    if np.all(rows[1:] > rows[:-1]):  # as they come from a block
        return rows
    ordered = np.sort(rows)
    if np.all(ordered[1:] != ordered[:-1]):
        return rows
    _, first = np.unique(rows, return_index=True)
    return rows[np.sort(first)]
