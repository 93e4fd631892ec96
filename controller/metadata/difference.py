"""What lies between two images of one log: the delta of batches that nobody has seen.

For a node that loads a snapshot while it has an older image: it obeys what changed in between, as
if it had read the batches.
"""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from controller.metadata.delta import MetadataDelta
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import CHUNK_BITS, NO_ROWS, PartitionTable, Rows
from controller.metadata.topics import NO_ROW

__all__ = ["delta_between"]

_Key = TypeVar("_Key")


def delta_between(before: MetadataImage, after: MetadataImage) -> MetadataDelta:
    """What a reader of the log would have been told on the way from `before` to `after`."""
    was, now = before.topics.by_id, after.topics.by_id
    return MetadataDelta(
        topics_created=tuple(topic_id for topic_id in now if topic_id not in was),
        topics_deleted=tuple(topic for topic_id, topic in was.items() if topic_id not in now),
        rows_changed=_rows_changed(before, after),
        brokers_changed=_changed(before.brokers, after.brokers),
        controllers_changed=_changed(before.controllers, after.controllers),
        configs_changed=_changed(before.configs, after.configs),
        features_changed=_changed(before.features, after.features),
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
