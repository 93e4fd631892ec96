"""Topics: names and ids, and the row of each partition in the table.

A row is found through the topic, never by arithmetic. Many rows at once are found through a
`RowIndex`, which is built once for a set of topics and shared by the images that have it.

Source of the legal names: Kafka's Topic.validate.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
import numpy.typing as npt

from controller.metadata.partitions import NO_ROWS, Rows

__all__ = [
    "INTERNAL_TOPICS",
    "NO_ROW",
    "RowIndex",
    "TopicImage",
    "Topics",
    "order_by_topic",
    "topic_name_problem",
]

NO_ROW = -1


@dataclass(frozen=True, slots=True, eq=False)
class TopicImage:
    """A topic. `rows[n]` is the row of partition n, -1 where there is none."""

    name: str
    id: UUID
    rows: Rows = field(repr=False)

    def row(self, partition: int) -> int | None:
        if not 0 <= partition < len(self.rows):
            return None
        row = int(self.rows[partition])
        return None if row == NO_ROW else row

    @property
    def partition_count(self) -> int:
        return int(np.count_nonzero(self.rows != NO_ROW))

    def partitions(self) -> Iterator[tuple[int, int]]:
        """Each partition index with its row, ascending."""
        for partition, row in enumerate(self.rows.tolist()):
            if row != NO_ROW:
                yield partition, row


@dataclass(frozen=True, slots=True, eq=False)
class RowIndex:
    """Finds the rows of many partitions at once: topics sorted by half of their id."""

    keys: npt.NDArray[np.uint64]  # ascending, all different
    ids: npt.NDArray[np.void]  # the whole id of each
    starts: npt.NDArray[np.int64]  # where in `rows` each begins; one more at the end
    rows: Rows

    @classmethod
    def of(cls, topics: Mapping[UUID, TopicImage]) -> "RowIndex | None":
        """None where half an id does not tell topics apart: then rows are found one by one."""
        ordered = list(topics.values())
        ids = np.frombuffer(b"".join(topic.id.bytes for topic in ordered), "V16")
        keys = _halves(ids)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        if bool(np.any(keys[1:] == keys[:-1])):
            return None
        ordered = [ordered[place] for place in order.tolist()]
        starts = np.zeros(len(ordered) + 1, np.int64)
        np.cumsum([len(topic.rows) for topic in ordered], out=starts[1:])
        parts = [topic.rows for topic in ordered]
        rows = np.concatenate(parts) if parts else NO_ROWS
        return cls(keys, ids[order], starts, rows)

    def find(self, topic_ids: npt.NDArray[np.void], partitions: npt.NDArray[np.int32]) -> Rows:
        """The row of each (topic id, partition), -1 where there is none."""
        if not len(self.keys):
            return np.full(len(topic_ids), NO_ROW, np.int32)
        borders = borders_of(topic_ids)  # mostly, partitions of a topic lie side by side
        ids = topic_ids[borders[:-1]]
        place = np.searchsorted(self.keys, _halves(ids))
        np.minimum(place, len(self.keys) - 1, out=place)
        starts = self.starts[place]
        ends = np.where(self.ids[place] == ids, self.starts[place + 1], starts)
        counts = np.diff(borders)
        index = np.repeat(starts, counts) + partitions
        known = (partitions >= 0) & (index < np.repeat(ends, counts))
        found = self.rows[np.where(known, index, 0)] if len(self.rows) else known.astype(np.int32)
        return np.where(known, found, np.int32(NO_ROW))


def borders_of(topic_ids: npt.NDArray[np.void]) -> npt.NDArray[np.intp]:
    """Where each run of one id begins, and at last where all end; only 0 without any."""
    if not len(topic_ids):
        return np.zeros(1, np.intp)
    halves = np.ascontiguousarray(topic_ids).view(np.uint64).reshape(-1, 2).T
    differs = (halves[0, 1:] != halves[0, :-1]) | (halves[1, 1:] != halves[1, :-1])
    return np.concatenate(([0], np.flatnonzero(differs) + 1, [len(topic_ids)]))


def order_by_topic(topic_ids: npt.NDArray[np.void]) -> npt.NDArray[np.intp]:
    """An order in which rows of one topic lie side by side, but for topics of the same half."""
    return np.argsort(_halves(topic_ids), kind="stable")


def _halves(ids: npt.NDArray[np.void]) -> npt.NDArray[np.uint64]:
    """The second half of each id: that of a random uuid has the more random bits."""
    return np.ascontiguousarray(ids).view(">u8").reshape(-1, 2)[:, 1].astype(np.uint64)


class Topics:
    """All topics, by id and by name. Not changed once given out; `_index` is a cache."""

    __slots__ = ("_index", "by_id", "by_name")

    def __init__(
        self,
        by_id: Mapping[UUID, TopicImage] | None = None,
        by_name: Mapping[str, TopicImage] | None = None,
    ) -> None:
        self.by_id: Mapping[UUID, TopicImage] = by_id or {}
        self.by_name: Mapping[str, TopicImage] = by_name or {}
        self._index: RowIndex | None = None

    def __len__(self) -> int:
        return len(self.by_id)

    def rows_of(self, topic_ids: npt.NDArray[np.void], partitions: npt.NDArray[np.int32]) -> Rows:
        """The row of each (topic id, partition), -1 where there is none."""
        if self._index is None:
            self._index = RowIndex.of(self.by_id)
        if self._index is not None:
            return self._index.find(topic_ids, partitions)
        found = np.full(len(topic_ids), NO_ROW, np.int32)
        for place, (topic_id, partition) in enumerate(
            zip(topic_ids.tolist(), partitions.tolist(), strict=True)
        ):
            topic = self.by_id.get(UUID(bytes=bytes(topic_id)))
            row = None if topic is None else topic.row(partition)
            if row is not None:
                found[place] = row
        return found


# Coordinators keep their state there: no client writes into these, nor deletes from them.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

_LENGTH_MAX = 249  # with "-" and a partition number it must still be a file name
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def topic_name_problem(name: str) -> str | None:
    """Why this cannot be a topic's name, as a sentence; None if it can."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is the name of a directory"
    if len(name) > _LENGTH_MAX:
        return f"Topic name is invalid: it has {len(name)} characters, and may have {_LENGTH_MAX}"
    if not _LEGAL.fullmatch(name):
        allowed = "ASCII letters and digits, '.', '_' and '-'"
        return f"Topic name is invalid: '{name}' has characters other than {allowed}"
    return None
