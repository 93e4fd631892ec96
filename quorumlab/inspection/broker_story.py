"""The story of a broker: its own life, and what each batch made of its partitions.

Partitions are followed in an image of all of them; what changed for the broker is seen in columns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from controller.metadata.changes import Change
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import PartitionTable, Rows
from controller.metadata.topics import NO_ROW
from quorumlab.inspection.batches import Batch
from quorumlab.inspection.states import Replay
from wire import metadata_records as records
from wire.partition_columns import PartitionBlock

__all__ = ["BrokerStory", "registration_change"]

_OF_PARTITIONS = (records.PartitionRecord, records.PartitionChangeRecord, PartitionBlock)
_NAMED_MAX = 3  # partitions; more are counted
_Flags = npt.NDArray[np.bool_]


@dataclass(slots=True)
class BrokerStory:
    id: int
    _state: Replay = field(default_factory=Replay, compare=False)

    def __str__(self) -> str:
        return f"broker {self.id}"

    def begin(self, start: Replay) -> Iterator[str]:
        self._state = start
        broker = start.image.brokers.get(self.id)
        if broker is not None:
            state = "fenced" if broker.fenced else "not fenced"
            yield f"registered with epoch {broker.epoch}, {state}"

    def tell(
        self, batch: Batch, changes: Sequence[tuple[int, Change]]
    ) -> Iterator[tuple[int, str]]:
        for offset, change in changes:
            for text in self._own_life(change):
                yield offset, text
        before = self._state.image
        self._state.take(batch)
        for first in (offset for offset, change in changes if isinstance(change, _OF_PARTITIONS)):
            yield from ((first, text) for text in self._partitions(before, self._state.image))
            break

    def _own_life(self, change: Change) -> Iterator[str]:
        match change:
            case records.RegisterBrokerRecord(broker_id=self.id) as record:
                state = "fenced" if record.fenced else "not fenced"
                where = ",".join(f"{e.name}://{e.host}:{e.port}" for e in record.end_points)
                yield f"registered with epoch {record.broker_epoch}, {state}, at {where}"
            case records.BrokerRegistrationChangeRecord(broker_id=self.id) as record:
                yield from registration_change(record)
            case records.UnregisterBrokerRecord(broker_id=self.id):
                yield "unregistered"
            case records.FenceBrokerRecord(id=self.id):
                yield "fenced"
            case records.UnfenceBrokerRecord(id=self.id):
                yield "unfenced"
            case _:
                pass

    def _partitions(self, before: MetadataImage, after: MetadataImage) -> Iterator[str]:
        rows = _changed_rows(before, after)
        columns = after.partitions.columns(rows)
        old_rows = before.topics.rows_of(columns.topic_id, columns.partition)
        led, was_member = _standing(before.partitions, old_rows, self.id)
        leads, is_member = _standing(after.partitions, rows, self.id)
        for text, hits in (
            ("became the leader of", leads & ~led),
            ("no longer leads", led & ~leads),
            ("fell out of the ISR of", was_member & ~is_member),
            ("came into the ISR of", is_member & ~was_member),
        ):
            if hits.any():
                yield f"{text} {_named(after, rows[hits])}"


def registration_change(record: records.BrokerRegistrationChangeRecord) -> Iterator[str]:
    if record.fenced:
        yield f"broker {record.broker_id} {'fenced' if record.fenced > 0 else 'unfenced'}"
    if record.in_controlled_shutdown:
        yield f"broker {record.broker_id} is shutting down in order"
    if record.log_dirs:
        yield f"broker {record.broker_id} has {len(record.log_dirs)} log directories online"


def _changed_rows(before: MetadataImage, after: MetadataImage) -> Rows:
    """Every row of the chunks that the two do not share, changed or not."""
    old = before.partitions.chunks
    found = [np.empty(0, np.int32)]
    for number, chunk in enumerate(after.partitions.chunks):
        if number >= len(old) or chunk is not old[number]:
            rows = np.flatnonzero(chunk.partition >= 0) + number * len(chunk.partition)
            found.append(rows.astype(np.int32))
    return np.concatenate(found)


def _standing(table: PartitionTable, rows: Rows, broker_id: int) -> tuple[_Flags, _Flags]:
    """Does the broker lead each row, and is it in its ISR? Neither holds where there is no row."""
    leads, is_member = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    there = np.flatnonzero(rows != NO_ROW)
    columns = table.columns(rows[there])
    leads[there] = columns.leader == broker_id
    for slot, brokers in enumerate(columns.replicas):
        is_member[there] |= (columns.isr >> np.uint8(slot) & 1 == 1) & (brokers == broker_id)
    for place in there[~columns.is_columnar].tolist():
        state = table.state(int(rows[place]))
        leads[place], is_member[place] = state.leader == broker_id, broker_id in state.isr
    return leads, is_member


def _named(image: MetadataImage, rows: Rows) -> str:
    if len(rows) > _NAMED_MAX:
        return f"{len(rows)} partitions"
    names = []
    for row in rows.tolist():
        place = image.partitions.place(row)
        assert place is not None, row
        topic = image.topic_by_id(place[0])
        names.append(f"{place[0] if topic is None else topic.name}-{place[1]}")
    return ", ".join(sorted(names))
