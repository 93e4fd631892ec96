"""An image as the records of a snapshot, and back; and what lies between two images of one log.

The order is Kafka's: features with metadata.version first, brokers and controllers, topics with
their partitions, configs, quotas, producer ids, ACLs, credentials, tokens. Records have the
versions of the image's metadata.version; what these cannot express is left out.

Within a batch the topics come before all of their partitions, and these in the order of their
shapes: many small topics are then as fast as a large one, to write and to read.

A node that loads a snapshot while it has an older image obeys the difference of the two, as if it
had read the batches in between (`delta_between`).

The control records and the file around them belong to the engine.

Source: KIP-630; Kafka's MetadataImage.write and its RecordListWriter.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from controller.metadata import blocks
from controller.metadata.changes import Change, decode_changes, encode_changes
from controller.metadata.delta import SECTIONS, MetadataDelta
from controller.metadata.image import MetadataImage
from controller.metadata.image_draft import ImageDraft
from controller.metadata.metadata_version import METADATA_VERSION
from controller.metadata.partition_records import record_of
from controller.metadata.partitions import CHUNK_BITS, NO_ROWS, PartitionTable, Rows
from controller.metadata.topics import NO_ROW, TopicImage
from controller.metadata.topics_draft import UnreplayableRecord
from quorum.core.types import OffsetAndEpoch
from wire import metadata_records as records
from wire.metadata_records import MetadataRecord
from wire.partition_block import grouped
from wire.partition_columns import NewPartitions, Uuids, joined, uuid_column

__all__ = ["BLOCK_RECORDS_MAX", "RECORDS_MAX", "SnapshotLoad", "batches_of", "delta_between"]

BLOCK_RECORDS_MAX = 1024  # of a batch of topics and partitions, as in Kafka
RECORDS_MAX = 128  # of another batch: these take a thread 100 times as long
RECORD_CHARACTERS_MAX = 1 << 20  # of config values in a batch
_NEVER_IN_A_SNAPSHOT = (
    records.BeginTransactionRecord,
    records.EndTransactionRecord,
    records.AbortTransactionRecord,
)
_FROM_SNAPSHOT = -1  # no broker and no epoch: of a record of producer ids


def batches_of(image: MetadataImage, *, timestamp_ms: int) -> Iterator[bytes]:
    """Everything that `image` holds, as record batches that each take a few milliseconds.

    Drawn lazily, in any thread: images never change.
    """
    assert image.transaction is None, f"a transaction is open at {image.at}"
    for changes in _batches(image):
        yield encode_changes(
            changes, timestamp_ms=timestamp_ms, metadata_version=image.metadata_version
        )


def _batches(image: MetadataImage) -> Iterator[tuple[Change, ...]]:
    yield from _parts(_written(image, _of_cluster(image)))
    directories = uuid_column(image.partitions.directories) if image.has_directories else None
    for topics, rows in _groups(image.topics.by_id.values()):
        yield from _topics_and_partitions(image, topics, rows, directories)
    yield from _parts(_written(image, _of_settings(image)))


# --- topics and partitions ----------------------------------------------------------------------


def _groups(topics: Iterable[TopicImage]) -> Iterator[tuple[list[TopicImage], Rows]]:
    """As many topics and rows as a batch may hold. No partition comes before its topic."""
    named: list[TopicImage] = []
    taken: list[Rows] = []
    room = BLOCK_RECORDS_MAX
    for topic in topics:
        named.append(topic)
        room -= 1
        left = topic.rows[topic.rows != NO_ROW]
        while len(left) >= room:
            yield named, np.concatenate([*taken, left[:room]])
            left, named, taken, room = left[room:], [], [], BLOCK_RECORDS_MAX
        taken.append(left)
        room -= len(left)
    rows = np.concatenate(taken) if taken else NO_ROWS
    if named or len(rows):
        yield named, rows


def _topics_and_partitions(
    image: MetadataImage, topics: list[TopicImage], rows: Rows, directories: Uuids | None
) -> Iterator[tuple[Change, ...]]:
    """The common shape as a block, and the other partitions one by one."""
    named = (records.TopicRecord(name=topic.name, topic_id=topic.id) for topic in topics)
    changes: list[Change] = list(named)
    now = image.partitions.columns(rows)
    fits = now.is_columnar & ~now.recovering
    if not np.all(fits):
        now = image.partitions.columns(rows[fits])
    if len(now.partition):
        changes.append(grouped(blocks.partitions_of_rows(now, directories)))
    if changes:
        yield tuple(changes)
    yield from _parts(
        _written(image, (record_of(*each) for each in image.partitions.partitions(rows[~fits])))
    )


# --- the rest -------------------------------------------------------------------------------------


def _of_cluster(image: MetadataImage) -> Iterator[MetadataRecord]:
    # metadata.version comes first: it says how to read the rest.
    for name, level in sorted(image.features.items(), key=lambda each: each[0] != METADATA_VERSION):
        yield records.FeatureLevelRecord(name=name, feature_level=level)
    for broker in image.brokers.values():
        yield records.RegisterBrokerRecord(
            broker_id=broker.id,
            incarnation_id=broker.incarnation_id,
            broker_epoch=broker.epoch,
            end_points=broker.end_points,
            features=tuple(broker.features.values()),
            rack=broker.rack,
            fenced=broker.fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
            log_dirs=broker.log_dirs,
            cordoned_log_dirs=broker.cordoned_log_dirs,
        )
    for controller in image.controllers.values():
        yield records.RegisterControllerRecord(
            controller_id=controller.id,
            incarnation_id=controller.incarnation_id,
            zk_migration_ready=controller.zk_migration_ready,
            end_points=controller.end_points,
            features=tuple(controller.features.values()),
        )


def _of_settings(image: MetadataImage) -> Iterator[MetadataRecord]:
    for (resource_type, resource_name), values in image.configs.items():
        for name, value in values.items():
            yield records.ConfigRecord(
                resource_type=resource_type, resource_name=resource_name, name=name, value=value
            )
    for entity, quotas in image.client_quotas.items():
        for key, quota in quotas.items():
            yield records.ClientQuotaRecord(entity=entity, key=key, value=quota, remove=False)
    if image.next_producer_id:
        yield records.ProducerIdsRecord(
            broker_id=_FROM_SNAPSHOT,
            broker_epoch=_FROM_SNAPSHOT,
            next_producer_id=image.next_producer_id,
        )
    yield from image.acls.values()
    yield from image.scram_credentials.values()
    yield from image.delegation_tokens.values()


def _written(image: MetadataImage, found: Iterable[MetadataRecord]) -> Iterator[MetadataRecord]:
    """The records as the image's metadata.version expresses them; without those that it cannot."""
    for record in found:
        expressed = records.expressed(record, image.metadata_version)
        if expressed is not None:
            yield expressed


def _parts(found: Iterable[MetadataRecord]) -> Iterator[tuple[MetadataRecord, ...]]:
    """Batches that are bounded in number and in size."""
    part: list[MetadataRecord] = []
    characters = 0
    for record in found:
        part.append(record)
        if isinstance(record, records.ConfigRecord):
            characters += len(record.value or "")
        if len(part) == RECORDS_MAX or characters > RECORD_CHARACTERS_MAX:
            yield tuple(part)
            part, characters = [], 0
    if part:
        yield tuple(part)


# --- and back ---------------------------------------------------------------------------------


class SnapshotLoad:
    """A snapshot on its way to an image, piece by piece."""

    def __init__(self) -> None:
        self._draft = ImageDraft(MetadataImage())
        self.has_data = False

    def take(self, batches: bytes) -> None:
        """Load the next whole batches. Raises ValueError if they are none of a snapshot."""
        blocks_found: list[NewPartitions] = []
        for batch in decode_changes(batches):
            self.has_data = True
            for change in batch.changes:
                if isinstance(change, _NEVER_IN_A_SNAPSHOT):
                    raise UnreplayableRecord(f"{type(change).__name__} in a snapshot")
                if isinstance(change, NewPartitions):
                    blocks_found.append(change)
                else:
                    self._draft.replay(change, 0)
        if blocks_found:  # at once, which is faster; no other record needs them
            self._draft.replay(joined(blocks_found), 0)

    def finish(self, end: OffsetAndEpoch) -> MetadataImage:
        """The image of all records before `end.offset`; the load is then spent."""
        self._draft.settle_registrations(end.offset - 1)
        return self._draft.finish(end)


_Key = TypeVar("_Key")


def delta_between(before: MetadataImage, after: MetadataImage) -> MetadataDelta:
    """The delta that a reader of the log would have got between `before` and `after`."""
    was, now = before.topics.by_id, after.topics.by_id
    return MetadataDelta(
        topics_created=tuple(topic_id for topic_id in now if topic_id not in was),
        topics_deleted=tuple(topic for topic_id, topic in was.items() if topic_id not in now),
        rows_changed=_rows_changed(before, after),
        **{
            f"{name}_changed": _changed(getattr(before, name), getattr(after, name))
            for name in SECTIONS
        },
    )


def _changed(before: Mapping[_Key, object], after: Mapping[_Key, object]) -> tuple[_Key, ...]:
    keys = dict.fromkeys((*before, *after))
    return tuple(key for key in keys if before.get(key) != after.get(key))


def _rows_changed(before: MetadataImage, after: MetadataImage) -> Rows:
    """The rows, in `after`, of partitions that are new or have another partition epoch.

    Every change raises that epoch, so equal ones of one log stand for equal states.
    """
    found = [NO_ROWS]
    for number, chunk in enumerate(after.partitions.chunks):
        places = np.flatnonzero(chunk.partition >= 0)
        rows = (places + (number << CHUNK_BITS)).astype(np.int32)
        old_rows = before.topics.rows_of(chunk.topic_id[places], chunk.partition[places])
        changed = old_rows == NO_ROW
        known = np.flatnonzero(~changed)
        now = _partition_epochs(after.partitions, rows[known])
        changed[known] = now != _partition_epochs(before.partitions, old_rows[known])
        found.append(rows[changed])
    return np.concatenate(found)


def _partition_epochs(table: PartitionTable, rows: Rows) -> npt.NDArray[np.int32]:
    columns = table.columns(rows)
    epochs = columns.partition_epoch
    for place in np.flatnonzero(~columns.is_columnar).tolist():
        epochs[place] = table.state(int(rows[place])).partition_epoch
    return epochs
