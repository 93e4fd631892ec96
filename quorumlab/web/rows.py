"""Partitions as the page holds them: short rows by topic, and what changed between two images.

A row is `[leader, leader epoch, replicas, ISR]`, the last two as numbers of lists that many
partitions share. Ten thousand partitions are about 150 kB.
"""

from collections.abc import Iterator, Mapping
from uuid import UUID

import numpy as np

from controller.metadata.image import MetadataImage
from controller.metadata.partitions import (
    CHUNK_BITS,
    CHUNK_ROWS,
    PartitionState,
    PartitionTable,
)

__all__ = ["Lists", "Row", "Rows", "changed_rows", "every_row", "gone_topics"]

Row = list[int]
Rows = Mapping[str, Mapping[int, Row]]  # by topic and partition


class Lists:
    """Lists of brokers by number. Numbers are never taken back."""

    def __init__(self) -> None:
        self.known: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[int, ...], int] = {}

    def number(self, brokers: tuple[int, ...]) -> int:
        found = self._numbers.setdefault(brokers, len(self.known))
        if found == len(self.known):
            self.known.append(brokers)
        return found


def every_row(image: MetadataImage, lists: Lists) -> Rows:
    table = image.partitions
    return _by_topic(image, table.partitions(np.arange(table.end_row, dtype=np.int32)), lists)


def gone_topics(before: MetadataImage, image: MetadataImage) -> list[str]:
    """Names of topics whose rows mean nothing any more, though another may have the name now."""
    if before.topics is image.topics:
        return []
    topics = before.topics.by_id.values()
    return [topic.name for topic in topics if image.topic_by_id(topic.id) is None]


def changed_rows(before: MetadataImage, image: MetadataImage, lists: Lists) -> Rows:
    """Rows in parts of the table that both images share are not looked at."""
    old, table = before.partitions, image.partitions
    if old is table:
        return {}
    known = {(topic, index): state for topic, index, state in _of_new_chunks(old, table)}
    found = (
        (topic, index, state)
        for topic, index, state in _of_new_chunks(table, old)
        if known.get((topic, index)) != state
    )
    return _by_topic(image, found, lists)


def _of_new_chunks(
    table: PartitionTable, other: PartitionTable
) -> Iterator[tuple[UUID, int, PartitionState]]:
    shared = {id(chunk) for chunk in other.chunks}
    for number, chunk in enumerate(table.chunks):
        if id(chunk) not in shared:
            first = number << CHUNK_BITS
            end = min(first + CHUNK_ROWS, table.end_row)
            yield from table.partitions(np.arange(first, end, dtype=np.int32))


def _by_topic(
    image: MetadataImage, states: Iterator[tuple[UUID, int, PartitionState]], lists: Lists
) -> dict[str, dict[int, Row]]:
    found: dict[str, dict[int, Row]] = {}
    for topic_id, index, state in states:
        topic = image.topic_by_id(topic_id)
        if topic is not None:
            replicas, isr = lists.number(state.replicas), lists.number(state.isr)
            row = [state.leader, state.leader_epoch, replicas, isr]
            found.setdefault(topic.name, {})[index] = row
    return found
