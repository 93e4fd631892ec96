"""Topics and their partitions in the making: what the records of both do to an image.

Knows which row of the table a partition has, and says what changed. Whole blocks are written at
once where they can be, and record by record where they cannot: both ways mean the same.

A record that cannot follow from the image is a broken log: `UnreplayableRecord`.

Source: KIP-631; Kafka's TopicsDelta and TopicDelta.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import UUID

import numpy as np

from controller.metadata import blocks
from controller.metadata.delta import distinct
from controller.metadata.draft import MappingDraft, TableDraft
from controller.metadata.partition_records import changed, state_of
from controller.metadata.partitions import NO_ROWS, PartitionTable, Rows
from controller.metadata.topics import NO_ROW, TopicImage, Topics, order_by_topic
from wire import metadata_records as records
from wire.partition_columns import NewPartitions, PartitionChanges, Uuids, take

__all__ = ["PARTITIONS_MAX", "TopicsDraft", "UnreplayableRecord"]

PARTITIONS_MAX = 1 << 22  # of a topic; keeps a broken record from filling the memory


class UnreplayableRecord(ValueError):
    """The record cannot follow from the image: the log, or this node, is wrong, and has to stop."""


_Run = tuple[TopicImage, slice]  # rows of one topic, side by side


class TopicsDraft:
    """A successor of `topics` and of the table that holds their partitions."""

    def __init__(self, topics: Topics, table: PartitionTable) -> None:
        self._topics = topics
        self._table = TableDraft(table)
        self._by_id = MappingDraft(topics.by_id)
        self._by_name = MappingDraft(topics.by_name)
        self._rows: dict[UUID, Rows] = {}  # of topics that got partitions here, with room for more
        # What changed, the first as an ordered set.
        self._created: dict[UUID, None] = {}
        self._deleted: list[TopicImage] = []
        self._rows_changed: list[Rows | int] = []

    def finish(self) -> tuple[Topics, PartitionTable]:
        return self._settled(), self._table.finish()

    def changed(self) -> dict[str, Any]:
        """The fields of `MetadataDelta` that are about topics and partitions."""
        rows = [NO_ROWS, *(np.atleast_1d(part) for part in self._rows_changed)]
        return {
            "topics_created": tuple(self._created),
            "topics_deleted": tuple(self._deleted),
            "rows_changed": distinct(np.concatenate(rows, dtype=np.int32)),
        }

    # --- topics -----------------------------------------------------------------------------

    def create(self, record: records.TopicRecord) -> None:
        if record.topic_id in self._by_id.now or record.name in self._by_name.now:
            raise UnreplayableRecord(f"a second topic of the same name or id: {record}")
        self._put(TopicImage(record.name, record.topic_id, NO_ROWS))
        self._created[record.topic_id] = None

    def remove(self, record: records.RemoveTopicRecord) -> TopicImage:
        """Remove a topic; returns it as it was."""
        topic = self._topic(record.topic_id, record)
        rows = self._rows.pop(topic.id, None)
        if rows is not None:
            topic = replace(topic, rows=rows)
        for _, row in topic.partitions():
            self._table.remove(row)
        self._by_id.remove(topic.id)
        self._by_name.remove(topic.name)
        if topic.id in self._created:
            del self._created[topic.id]
        else:
            self._deleted.append(topic)
        return topic

    def _topic(self, topic_id: UUID, record: object) -> TopicImage:
        topic = self._by_id.now.get(topic_id)
        if topic is None:
            raise UnreplayableRecord(f"unknown topic: {record}")
        return topic

    def _put(self, topic: TopicImage) -> None:
        self._by_id.put(topic.id, topic)
        self._by_name.put(topic.name, topic)

    def _settled(self) -> Topics:
        """The topics with the changes so far."""
        for topic_id, rows in self._rows.items():
            topic = self._by_id.now[topic_id]
            self._put(TopicImage(topic.name, topic.id, _without_room(rows)))
        self._rows = {}
        if self._by_id.changed:
            self._topics = Topics(self._by_id.now, self._by_name.now)
            self._by_id = MappingDraft(self._topics.by_id)  # what was given out stays as it is
            self._by_name = MappingDraft(self._topics.by_name)
        return self._topics

    # --- new partitions ---------------------------------------------------------------------

    def put_partition(self, record: records.PartitionRecord) -> None:
        topic = self._topic(record.topic_id, record)
        index = record.partition_id
        if not 0 <= index < PARTITIONS_MAX or not record.replicas:
            raise UnreplayableRecord(f"no partition: {record}")
        state = state_of(record)
        rows = self._room(topic, index + 1)
        row = int(rows[index])
        if row == NO_ROW:
            row = rows[index] = self._table.insert(topic.id, index, state)
        else:
            self._table.replace(row, before=self._table.view().state(row), after=state)
        self._rows_changed.append(row)

    def put_block(self, block: NewPartitions) -> None:
        """Write what is new and of the common shape at once, and the rest one by one."""
        wrong = (block.partition_ids < 0) | (block.partition_ids >= PARTITIONS_MAX)
        wrong |= block.replica_counts < 1
        if np.any(wrong):
            raise UnreplayableRecord(f"no partition: row {int(np.argmax(wrong))} of a block")
        block = take(block, order_by_topic(block.topic_ids))
        numbers = blocks.directory_numbers(block, self._table)
        runs = list(self._runs_by_topic(block.topic_ids))
        if numbers is None or self._knows_any(block, runs) or blocks.has_repeated_partition(block):
            for record in block.records():
                self.put_partition(record)
            return
        new, at_once = blocks.new_rows(block, numbers)
        rows = np.full(len(block), NO_ROW, np.int32)
        rows[at_once] = self._table.insert_many(new)
        self._rows_changed.append(rows[at_once])
        for topic, run in runs:
            indexes = block.partition_ids[run]
            self._room(topic, int(indexes.max()) + 1)[indexes] = rows[run]
        for record in take(block, np.flatnonzero(~at_once)).records():
            self.put_partition(record)

    def _runs_by_topic(self, topic_ids: Uuids) -> Iterator[_Run]:
        if not len(topic_ids):
            return
        borders = np.flatnonzero(topic_ids[1:] != topic_ids[:-1]) + 1
        ids = topic_ids.tolist()
        for start, end in pairwise([0, *borders.tolist(), len(topic_ids)]):
            yield self._topic(UUID(bytes=ids[start]), "a block of partitions"), slice(start, end)

    def _knows_any(self, block: NewPartitions, runs: Iterable[_Run]) -> bool:
        """Does a partition of the block exist already?"""
        for topic, run in runs:
            known = self._rows.get(topic.id, topic.rows)
            if len(known):
                indexes = block.partition_ids[run]
                if np.any(known[indexes[indexes < len(known)]] != NO_ROW):
                    return True
        return False

    def _room(self, topic: TopicImage, end: int) -> Rows:
        """The rows of the topic, to be written, with room for partitions below `end`."""
        rows = self._rows.get(topic.id)
        if rows is not None and len(rows) >= end:
            return rows
        before = topic.rows if rows is None else rows
        room = np.full(max(end, len(before) if rows is None else 2 * len(before)), NO_ROW, np.int32)
        room[: len(before)] = before
        self._rows[topic.id] = room
        return room

    # --- changed partitions -----------------------------------------------------------------

    def change_partition(self, record: records.PartitionChangeRecord) -> None:
        topic = self._topic(record.topic_id, record)
        rows = self._rows.get(topic.id, topic.rows)
        index = record.partition_id
        if not 0 <= index < len(rows) or rows[index] == NO_ROW:
            raise UnreplayableRecord(f"unknown partition: {record}")
        row = int(rows[index])
        before = self._table.view().state(row)
        self._table.replace(row, before=before, after=changed(before, record))
        self._rows_changed.append(row)

    def change_block(self, block: PartitionChanges) -> None:
        found = self._settled().rows_of(block.topic_ids, block.partition_ids)
        order = np.argsort(found, kind="stable")  # neighbours are written together
        rows = found[order]
        if len(rows) and rows[0] < 0:
            raise UnreplayableRecord(f"unknown partition: {take(block, order[:1])}")
        if np.any(rows[1:] == rows[:-1]):  # then the order of changes matters
            for record in block.records():
                self.change_partition(record)
            return
        members = self._table.view().members(rows)
        fits, isr = blocks.writable_rows(block, order, *members)
        rest = order[~fits]
        if len(rest):
            rows, order, isr = rows[fits], order[fits], isr[fits]
        self._table.change(
            rows, isr=isr, leader=block.leaders[order], recovery_state=block.recovery_states[order]
        )
        self._rows_changed.append(rows)
        for record in take(block, rest).records():
            self.change_partition(record)

    def clear_elr(self, record: records.ClearElrRecord) -> None:
        table = self._table.view()
        for topic_id, index, _ in table.partitions(table.rows_with_eligible_leaders()):
            if record.topic_name in ("", self._by_id.now[topic_id].name):
                self.change_partition(
                    records.PartitionChangeRecord(
                        topic_id=topic_id,
                        partition_id=index,
                        eligible_leader_replicas=(),
                        last_known_elr=(),
                    )
                )


def _without_room(rows: Rows) -> Rows:
    if len(rows) and rows[-1] != NO_ROW:
        return rows
    used = np.flatnonzero(rows != NO_ROW)
    return rows[: int(used[-1]) + 1 if len(used) else 0].copy()
