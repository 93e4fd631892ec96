"""Applying changes: the only way from an image to its successor.

An `ImageDraft` copies what it touches of an image and shares the rest. Records say what is, not
what should be: nothing is decided here, and a record that cannot follow from the image (a change
of an unknown partition) is a broken log, not a request to refuse.

Records between BeginTransaction and EndTransaction are applied as they come, but stay out of
`MetadataImage.stable` and of deltas until the end; an abort takes them back (KIP-868).

Credentials, ACLs, quotas and delegation tokens are accepted and not kept: nothing enforces them
yet.

Source: KIP-631 and its successors; what Kafka's image does with each record.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar
from uuid import UUID

import numpy as np

from controller.metadata import blocks
from controller.metadata.changes import Change, CommittedBatch, offsets_of
from controller.metadata.delta import ConfigResource, MetadataDelta, distinct
from controller.metadata.draft import NewRows, TableDraft
from controller.metadata.image import (
    BrokerImage,
    ControllerImage,
    MetadataImage,
    OpenTransaction,
    ResourceType,
)
from controller.metadata.partition_records import changed, state_of
from controller.metadata.partitions import Rows
from controller.metadata.topics import TopicImage, Topics
from quorum.types import OffsetAndEpoch
from wire import metadata_records as records
from wire.partition_columns import NewPartitions, PartitionChanges, take

__all__ = ["ImageDraft", "UnreplayableRecord", "apply", "apply_with_delta"]

PARTITIONS_MAX = 1 << 22  # of a topic; keeps a broken record from filling the memory

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class UnreplayableRecord(ValueError):
    """The record cannot follow from the image: the log, or we, are wrong. Nothing can go on."""


def apply(image: MetadataImage, changes: Iterable[Change], at: OffsetAndEpoch) -> MetadataImage:
    """The image after `changes`, the last of which has offset `at.offset` - 1."""
    return _applied(image, tuple(changes), at)[0]


def apply_with_delta(
    image: MetadataImage, batch: CommittedBatch
) -> tuple[MetadataImage, MetadataDelta]:
    """The image after a batch, and what changed between the two images' `stable`."""
    return _applied(image, batch.changes, OffsetAndEpoch(batch.next_offset, batch.epoch))


def _applied(
    image: MetadataImage, changes: tuple[Change, ...], at: OffsetAndEpoch
) -> tuple[MetadataImage, MetadataDelta]:
    published = MetadataDelta()
    draft = ImageDraft(image)
    for offset, change in offsets_of(changes, end_offset=at.offset):
        match change:
            case records.BeginTransactionRecord():
                if image.transaction is not None:
                    raise UnreplayableRecord("a transaction begins within another")
                image, delta = draft.finish(at)
                published = published.then(delta)
                opened = replace(image, at=OffsetAndEpoch(offset, at.epoch))
                image = replace(
                    image, transaction=OpenTransaction(before=opened, delta=MetadataDelta())
                )
                draft = ImageDraft(image)
            case records.EndTransactionRecord() | records.AbortTransactionRecord():
                image, delta = _close(image, draft, change, at)
                published = published.then(delta)
                draft = ImageDraft(image)
            case _:
                draft.replay(change, offset)
    image, delta = draft.finish(at)
    if image.transaction is None:
        return image, published.then(delta)
    kept = replace(image.transaction, delta=image.transaction.delta.then(delta))
    return replace(image, transaction=kept), published


def _close(
    image: MetadataImage, draft: "ImageDraft", change: Change, at: OffsetAndEpoch
) -> tuple[MetadataImage, MetadataDelta]:
    transaction = image.transaction
    if transaction is None:
        raise UnreplayableRecord(f"{type(change).__name__} without a transaction")
    if isinstance(change, records.AbortTransactionRecord):
        return replace(transaction.before, at=at), MetadataDelta()
    finished, delta = draft.finish(at)
    return replace(finished, transaction=None), transaction.delta.then(delta)


class ImageDraft:
    """A successor of an image in the making."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._table = TableDraft(image.partitions)
        self._features = image.features
        self._brokers = image.brokers
        self._controllers = image.controllers
        self._topics = image.topics
        self._topics_by_id = image.topics.by_id
        self._topics_by_name = image.topics.by_name
        self._configs = image.configs
        self._next_producer_id = image.next_producer_id
        self._rows: dict[UUID, list[int]] = {}  # of topics that got partitions here
        self._owned: set[int] = set()  # ids of mappings that were copied here
        # What changed, as ordered sets.
        self._created: dict[UUID, None] = {}
        self._deleted: list[TopicImage] = []
        self._rows_changed: list[Rows | int] = []
        self._brokers_changed: dict[int, None] = {}
        self._controllers_changed: dict[int, None] = {}
        self._configs_changed: dict[ConfigResource, None] = {}
        self._features_changed: dict[str, None] = {}

    def finish(self, at: OffsetAndEpoch) -> tuple[MetadataImage, MetadataDelta]:
        """The successor and what changed; the draft is then spent."""
        image = MetadataImage(
            at=at,
            features=self._features,
            brokers=self._brokers,
            controllers=self._controllers,
            topics=self._settled_topics(),
            partitions=self._table.finish(),
            configs=self._configs,
            next_producer_id=self._next_producer_id,
            transaction=self._image.transaction,
        )
        return image, self._delta()

    def replay(self, change: Change, offset: int) -> None:
        """Apply one change, the (first) record of which lies at `offset`."""
        match change:
            case PartitionChanges():
                self._change_block(change)
                return
            case NewPartitions():
                self._put_block(change)
                return
            case _:
                pass
        replay = _REPLAY.get(type(change))
        if replay is not None:
            replay(self, change, offset)

    def _settled_topics(self) -> Topics:
        """The topics as they are by now."""
        for topic_id, rows in self._rows.items():
            topic = self._topics_by_id[topic_id]
            self._put_topic(replace(topic, rows=np.array(rows, np.int32)))
        self._rows = {}
        if self._topics_by_id is not self._topics.by_id:
            self._topics = Topics(self._topics_by_id, self._topics_by_name)
            self._owned -= {id(self._topics_by_id), id(self._topics_by_name)}  # given out
        return self._topics

    def _own(self, mapping: Mapping[_Key, _Value]) -> dict[_Key, _Value]:
        """A copy that may be changed; the draft's own copy as it is."""
        if id(mapping) in self._owned:
            assert isinstance(mapping, dict), type(mapping)
            return mapping
        copy = dict(mapping)
        self._owned.add(id(copy))
        return copy

    def _delta(self) -> MetadataDelta:
        rows = [np.atleast_1d(np.asarray(part, np.int32)) for part in self._rows_changed]
        return MetadataDelta(
            topics_created=tuple(self._created),
            topics_deleted=tuple(self._deleted),
            rows_changed=distinct(np.concatenate(rows)) if rows else np.empty(0, np.int32),
            brokers_changed=tuple(self._brokers_changed),
            controllers_changed=tuple(self._controllers_changed),
            configs_changed=tuple(self._configs_changed),
            features_changed=tuple(self._features_changed),
        )

    # --- topics and partitions

    def _create_topic(self, record: records.TopicRecord, offset: int) -> None:
        if record.topic_id in self._topics_by_id or record.name in self._topics_by_name:
            raise UnreplayableRecord(f"a second topic of the same name or id: {record}")
        self._put_topic(TopicImage(record.name, record.topic_id, np.empty(0, np.int32)))
        self._created[record.topic_id] = None

    def _remove_topic(self, record: records.RemoveTopicRecord, offset: int) -> None:
        topic = self._topic(record.topic_id, record)
        rows = self._rows.pop(topic.id, None)
        if rows is not None:
            topic = replace(topic, rows=np.array(rows, np.int32))
        for _, row in topic.partitions():
            self._table.remove(row)
        by_id, by_name = self._own(self._topics_by_id), self._own(self._topics_by_name)
        del by_id[topic.id], by_name[topic.name]
        self._topics_by_id, self._topics_by_name = by_id, by_name
        self._set_configs((ResourceType.TOPIC, topic.name), {})
        if topic.id in self._created:
            del self._created[topic.id]
        else:
            self._deleted.append(topic)

    def _put_partition(self, record: records.PartitionRecord, offset: int) -> None:
        topic = self._topic(record.topic_id, record)
        if not 0 <= record.partition_id < PARTITIONS_MAX or not record.replicas:
            raise UnreplayableRecord(f"no partition: {record}")
        state = state_of(record)
        rows = self._rows_of(topic)
        index = record.partition_id
        rows.extend([-1] * (index + 1 - len(rows)))
        if rows[index] < 0:
            rows[index] = self._table.insert(topic.id, index, state)
        else:
            row = rows[index]
            self._table.replace(row, before=self._table.view().state(row), after=state)
        self._rows_changed.append(rows[index])

    def _put_block(self, block: NewPartitions) -> None:
        """Write at once what is new and of the common shape, and the rest one by one."""
        numbers = blocks.directory_numbers(block, self._table)
        known = self._settled_topics().rows_of(block.topic_ids, block.partition_ids) >= 0
        if numbers is None or np.any(known) or blocks.has_repeated_partition(block):
            for record in block.records():
                self._put_partition(record, 0)
            return
        new, at_once = blocks.new_rows(block, numbers)
        self._check_places(block)
        inserted = self._table.insert_many(new)
        self._rows_changed.append(inserted)
        self._place_rows(new, inserted)
        for record in take(block, np.flatnonzero(~at_once)).records():
            self._put_partition(record, 0)

    def _check_places(self, block: NewPartitions) -> None:
        indexes = block.partition_ids
        wrong = (indexes < 0) | (indexes >= PARTITIONS_MAX) | (block.replica_counts < 1)
        if np.any(wrong):
            raise UnreplayableRecord(f"no partition: row {int(np.argmax(wrong))} of a block")

    def _place_rows(self, new: NewRows, inserted: Rows) -> None:
        """Tell the topics where their new partitions are, topic after topic."""
        if not len(inserted):
            return
        borders = np.flatnonzero(new.topic_id[1:] != new.topic_id[:-1]) + 1
        for start, end in pairwise([0, *borders.tolist(), len(inserted)]):
            topic = self._topic(UUID(bytes=bytes(new.topic_id[start])), "a block of partitions")
            rows = self._rows_of(topic)
            indexes = new.partition[start:end].tolist()
            rows.extend([-1] * (max(indexes) + 1 - len(rows)))
            for index, row in zip(indexes, inserted[start:end].tolist(), strict=True):
                rows[index] = row

    def _change_partition(self, record: records.PartitionChangeRecord, offset: int) -> None:
        row = self._row(record.topic_id, record.partition_id, record)
        before = self._table.view().state(row)
        self._table.replace(row, before=before, after=changed(before, record))
        self._rows_changed.append(row)

    def _change_block(self, block: PartitionChanges) -> None:
        rows = self._settled_topics().rows_of(block.topic_ids, block.partition_ids)
        if np.any(rows < 0):
            place = int(np.argmin(rows))
            raise UnreplayableRecord(f"unknown partition: {take(block, slice(place, place + 1))}")
        table = self._table.view()
        if blocks.is_repeated(rows, table.end_row):
            for record in block.records():
                self._change_partition(record, 0)
            return
        writable = blocks.writable_rows(block, table.columns(rows))
        at_once = np.flatnonzero(writable.fits)
        self._table.change(
            rows[at_once],
            isr=writable.isr[at_once],
            leader=block.leaders[at_once],
            recovery_state=block.recovery_states[at_once],
        )
        self._rows_changed.append(rows[at_once])
        for record in take(block, np.flatnonzero(~writable.fits)).records():
            self._change_partition(record, 0)

    def _clear_elr(self, record: records.ClearElrRecord, offset: int) -> None:
        table = self._table.view()
        for row in table.rows_with_eligible_leaders().tolist():
            place = table.place(row)
            assert place is not None, f"row {row} is free"
            topic_id, index = place
            if record.topic_name in ("", self._topics_by_id[topic_id].name):
                cleared = records.PartitionChangeRecord(
                    topic_id=topic_id,
                    partition_id=index,
                    eligible_leader_replicas=(),
                    last_known_elr=(),
                )
                self._change_partition(cleared, offset)

    def _topic(self, topic_id: UUID, record: object) -> TopicImage:
        topic = self._topics_by_id.get(topic_id)
        if topic is None:
            raise UnreplayableRecord(f"unknown topic: {record}")
        return topic

    def _row(self, topic_id: UUID, index: int, record: object) -> int:
        topic = self._topic(topic_id, record)
        rows = self._rows.get(topic_id)
        if rows is None:
            row = topic.row(index)
        else:
            row = rows[index] if 0 <= index < len(rows) and rows[index] >= 0 else None
        if row is None:
            raise UnreplayableRecord(f"unknown partition: {record}")
        return row

    def _rows_of(self, topic: TopicImage) -> list[int]:
        return self._rows.setdefault(topic.id, topic.rows.tolist())

    def _put_topic(self, topic: TopicImage) -> None:
        by_id, by_name = self._own(self._topics_by_id), self._own(self._topics_by_name)
        by_id[topic.id] = by_name[topic.name] = topic
        self._topics_by_id, self._topics_by_name = by_id, by_name

    # --- brokers and controllers

    def _register_broker(self, record: records.RegisterBrokerRecord, offset: int) -> None:
        self._put_broker(
            BrokerImage(
                id=record.broker_id,
                incarnation_id=record.incarnation_id,
                epoch=record.broker_epoch,
                end_points=record.end_points,
                features={feature.name: feature for feature in record.features},
                rack=record.rack,
                fenced=record.fenced,
                in_controlled_shutdown=record.in_controlled_shutdown,
                log_dirs=record.log_dirs,
                registered_at_offset=offset,
            )
        )

    def _unregister_broker(self, record: records.UnregisterBrokerRecord, offset: int) -> None:
        self._broker(record.broker_id, record.broker_epoch, record)
        brokers = self._own(self._brokers)
        del brokers[record.broker_id]
        self._brokers = brokers
        self._brokers_changed[record.broker_id] = None

    def _change_broker(self, record: records.BrokerRegistrationChangeRecord, offset: int) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch, record)
        self._put_broker(
            replace(
                broker,
                fenced=broker.fenced if record.fenced == 0 else record.fenced > 0,
                in_controlled_shutdown=(
                    broker.in_controlled_shutdown or record.in_controlled_shutdown > 0
                ),
                log_dirs=record.log_dirs or broker.log_dirs,
            )
        )

    def _fence_broker(self, record: records.FenceBrokerRecord, offset: int) -> None:
        self._put_broker(replace(self._broker(record.id, record.epoch, record), fenced=True))

    def _unfence_broker(self, record: records.UnfenceBrokerRecord, offset: int) -> None:
        self._put_broker(replace(self._broker(record.id, record.epoch, record), fenced=False))

    def _register_controller(self, record: records.RegisterControllerRecord, offset: int) -> None:
        controllers = self._own(self._controllers)
        controllers[record.controller_id] = ControllerImage(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            zk_migration_ready=record.zk_migration_ready,
            end_points=record.end_points,
            features={feature.name: feature for feature in record.features},
        )
        self._controllers = controllers
        self._controllers_changed[record.controller_id] = None

    def _broker(self, broker_id: int, epoch: int, record: object) -> BrokerImage:
        broker = self._brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise UnreplayableRecord(f"no such broker of that epoch: {record}")
        return broker

    def _put_broker(self, broker: BrokerImage) -> None:
        brokers = self._own(self._brokers)
        brokers[broker.id] = broker
        self._brokers = brokers
        self._brokers_changed[broker.id] = None

    # --- the rest

    def _set_config(self, record: records.ConfigRecord, offset: int) -> None:
        resource = (record.resource_type, record.resource_name)
        values = dict(self._configs.get(resource, {}))
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        self._set_configs(resource, values)
        self._configs_changed[resource] = None

    def _set_configs(self, resource: ConfigResource, values: Mapping[str, str]) -> None:
        if not values and resource not in self._configs:
            return
        configs = self._own(self._configs)
        if values:
            configs[resource] = values
        else:
            del configs[resource]
        self._configs = configs

    def _set_feature(self, record: records.FeatureLevelRecord, offset: int) -> None:
        features = self._own(self._features)
        if record.feature_level == 0:
            features.pop(record.name, None)
        else:
            features[record.name] = record.feature_level
        self._features = features
        self._features_changed[record.name] = None

    def _set_producer_ids(self, record: records.ProducerIdsRecord, offset: int) -> None:
        if record.next_producer_id <= self._next_producer_id:
            raise UnreplayableRecord(f"producer ids must grow: {record}")
        self._next_producer_id = record.next_producer_id


_REPLAY: Mapping[type, Callable[[ImageDraft, Any, int], None]] = {
    records.TopicRecord: ImageDraft._create_topic,
    records.RemoveTopicRecord: ImageDraft._remove_topic,
    records.PartitionRecord: ImageDraft._put_partition,
    records.PartitionChangeRecord: ImageDraft._change_partition,
    records.ClearElrRecord: ImageDraft._clear_elr,
    records.RegisterBrokerRecord: ImageDraft._register_broker,
    records.UnregisterBrokerRecord: ImageDraft._unregister_broker,
    records.BrokerRegistrationChangeRecord: ImageDraft._change_broker,
    records.FenceBrokerRecord: ImageDraft._fence_broker,
    records.UnfenceBrokerRecord: ImageDraft._unfence_broker,
    records.RegisterControllerRecord: ImageDraft._register_controller,
    records.ConfigRecord: ImageDraft._set_config,
    records.FeatureLevelRecord: ImageDraft._set_feature,
    records.ProducerIdsRecord: ImageDraft._set_producer_ids,
}
