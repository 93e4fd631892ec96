"""The story of one thing: every record that touched it, as a sentence with its cause.

The subject is a partition (`orders-3`), a broker (`2`, `broker 2`, or `broker-2` where no topic has
that name) or what is configured of a topic or broker (`config orders`). Batches come as changes
with their offsets, blocks and all: what does not concern the subject costs next to nothing.
"""

import difflib
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import get_args
from uuid import UUID

import numpy as np
import numpy.typing as npt

from controller.metadata.changes import Change, offsets_of
from controller.metadata.image import MetadataImage
from controller.metadata.partition_records import changed, state_of
from controller.metadata.partitions import (
    NO_LEADER,
    RECOVERING,
    PartitionState,
    PartitionTable,
    Rows,
)
from controller.metadata.topics import NO_ROW
from quorumlab.inspection.batches import Batch, Damage
from quorumlab.inspection.entries import Unknown, entries
from quorumlab.inspection.states import Replay, load_snapshot
from quorumlab.inspection.stream import target_batches
from quorumlab.inspection.target import Target, snapshot_id
from quorumlab.inspection.tree import DEFAULT
from quorumlab.output import one_line
from wire import metadata_records as records
from wire.control_records import ControlRecord
from wire.partition_block import decode
from wire.partition_columns import TOPIC_ID, PartitionBlock, take

__all__ = [
    "BrokerStory",
    "ConfigStory",
    "Event",
    "PartitionStory",
    "Subject",
    "also_meant",
    "nearest",
    "parse_subject",
    "story",
]

_NAMES_MAX = 20  # that are listed where none is near


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    offset: int
    epoch: int
    timestamp_ms: int
    text: str


def story(target: Target, subject: "Subject") -> Iterator[Event | Damage]:
    start = _known_before(target)
    at = start.image.at
    for text in subject.begin(start):
        yield Event(
            offset=at.offset - 1,
            epoch=at.epoch,
            timestamp_ms=start.timestamp_ms,
            text=f"known from the snapshot: {text}",
        )
    batches = target_batches(target, starts_at=at.offset) if target.segments else ()
    for found in batches:
        if isinstance(found, Damage):
            yield found
        elif not found.header.is_control:
            for offset, text in sorted(subject.tell(found, _changes_of(found)), key=itemgetter(0)):
                yield Event(
                    offset=offset,
                    epoch=found.header.leader_epoch,
                    timestamp_ms=found.header.base_timestamp_ms,
                    text=text,
                )


def _changes_of(batch: Batch) -> list[tuple[int, Change]]:
    """Changes with their offsets, without what this version does not know."""
    try:
        changes = tuple(decode(batch.content))
    except ValueError:  # whatever a reader of batches or records refuses
        return [
            (entry.offset, entry.content)
            for entry in entries(batch)
            if not isinstance(entry.content, Unknown | ControlRecord)
        ]
    return list(offsets_of(changes, end_offset=batch.header.next_offset))


def _known_before(target: Target) -> Replay:
    """Loads the oldest snapshot of a log that was cut; a log that begins at 0 needs none."""
    is_cut = bool(target.segments) and target.segments[0].stem.strip("0") != ""
    usable = [path for path in target.snapshots if snapshot_id(path)[0]]
    is_alone = not target.segments
    return load_snapshot(usable[0]) if (is_cut or is_alone) and usable else Replay()


def nearest(image: MetadataImage, subject: "Subject") -> str:
    """Suggests, quoted for a shell, subjects near one that no record touches."""
    match subject:
        case PartitionStory(topic=name):
            topic = image.topic(name)
            if topic is not None:
                return f"topic {name} has {topic.partition_count} partitions"
            known = sorted(image.topics.by_name)
            meant = f"{{}}-{subject.index}"
        case BrokerStory():
            return f"there are brokers {', '.join(map(str, sorted(image.brokers))) or '-'}"
        case ConfigStory(name=name):
            known = sorted({resource or DEFAULT for _, resource in image.configs})
            meant = "config {}"
    close = difflib.get_close_matches(name, known, n=3)
    if close:
        return f"did you mean {' or '.join(meant.format(shlex.quote(each)) for each in close)}?"
    return f"there are {', '.join(known[:_NAMES_MAX]) or 'none'}"


@dataclass(slots=True)
class ConfigStory:
    """The story of what is configured of a topic, a broker, or another resource of that name."""

    name: str  # empty: what brokers have by default
    _values: dict[str, str] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f"config {self.name or DEFAULT}"

    def begin(self, start: Replay) -> Iterator[str]:
        for (_, resource), values in start.image.configs.items():
            if resource == self.name:
                self._values |= values
        for name, value in sorted(self._values.items()):
            yield f"{name} = {one_line(value)}"

    def tell(
        self, batch: Batch, changes: Sequence[tuple[int, Change]]
    ) -> Iterator[tuple[int, str]]:
        for offset, change in changes:
            match change:
                case records.ConfigRecord(resource_name=self.name, name=name, value=value):
                    yield offset, self._set(name, value)
                case _:
                    pass

    def _set(self, name: str, value: str | None) -> str:
        before = self._values.pop(name, None)
        if value is None:
            return f"{name} back to its default, it was {one_line(before or '-')}"
        self._values[name] = value
        text = f"{name} = {one_line(value)}"
        return text if before is None else f"{text}, it was {one_line(before)}"


# --- of a broker ----------------------------------------------------------------------------


_OF_PARTITIONS = (records.PartitionRecord, records.PartitionChangeRecord, *get_args(PartitionBlock))
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
                yield from _registration_change(record)
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


def _registration_change(record: records.BrokerRegistrationChangeRecord) -> Iterator[str]:
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


# --- of a partition -------------------------------------------------------------------------


_PartitionRecord = records.PartitionRecord | records.PartitionChangeRecord


@dataclass(slots=True)
class PartitionStory:
    topic: str
    index: int
    _topic_id: UUID | None = field(default=None, compare=False)
    _state: PartitionState | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    def begin(self, start: Replay) -> Iterator[str]:
        known = start.image.topic(self.topic)
        if known is not None:
            self._topic_id = known.id
            self._state = start.image.partition(known.id, self.index)
        if self._state is not None:
            state = self._state
            isr, leader = _many(state.isr), _leader(state.leader)
            yield f"on {_many(state.replicas)}, ISR {isr}, {leader}"

    def tell(
        self, batch: Batch, changes: Sequence[tuple[int, Change]]
    ) -> Iterator[tuple[int, str]]:
        for offset, change in changes:
            match change:
                case records.TopicRecord(name=name, topic_id=topic_id) if name == self.topic:
                    self._topic_id, self._state = topic_id, None
                case records.RemoveTopicRecord(topic_id=topic_id) if topic_id == self._topic_id:
                    if self._state is not None:
                        yield offset, "the topic was deleted"
                    self._topic_id = self._state = None
                case records.PartitionRecord() | records.PartitionChangeRecord():
                    if (change.topic_id, change.partition_id) == (self._topic_id, self.index):
                        yield offset, self._told(change, changes)
                case _ if isinstance(change, PartitionBlock) and self._topic_id is not None:
                    for row in self._rows(change, self._topic_id):
                        (record,) = take(change, slice(row, row + 1)).records()
                        yield offset + row, self._told(record, changes)
                case _:
                    pass

    def _rows(self, block: PartitionBlock, topic_id: UUID) -> list[int]:
        is_it = block.topic_ids == np.frombuffer(topic_id.bytes, TOPIC_ID)[0]
        rows: list[int] = np.flatnonzero(is_it & (block.partition_ids == self.index)).tolist()
        return rows

    def _told(self, record: _PartitionRecord, together: Sequence[tuple[int, Change]]) -> str:
        if isinstance(record, records.PartitionRecord):
            self._state = state_of(record)
            isr, leader = _many(record.isr), _leader(record.leader)
            return f"created on {_many(record.replicas)}, ISR {isr}, {leader}"
        if self._state is None:
            return "changed, but its creation is not in what is left of the log"
        before, self._state = self._state, changed(self._state, record)
        causes = tuple(_causes(together, before, self._state)) or _asked(before, self._state)
        parts = [*_changes(before, self._state)] or ["written again, with nothing changed"]
        because = f" ({'; '.join(causes)})" if causes else ""
        epochs = f"partition epoch {self._state.partition_epoch}"
        if self._state.leader_epoch != before.leader_epoch:
            epochs = f"leader epoch {self._state.leader_epoch}, {epochs}"
        return f"{'; '.join(parts)}{because}; {epochs}"


def _changes(before: PartitionState, after: PartitionState) -> Iterator[str]:
    """Puts the change into words, the most important first."""
    yield from _elections(before, after)
    left = [broker for broker in before.isr if broker not in after.isr]
    joined = [broker for broker in after.isr if broker not in before.isr]
    if left:
        yield f"{_brokers(left)} fell out of the ISR, which is {_many(after.isr)}"
    if joined:
        yield f"{_brokers(joined)} came into the ISR, which is {_many(after.isr)}"
    yield from _moves(before, after)
    if after.eligible_leader_replicas != before.eligible_leader_replicas:
        yield f"eligible leaders outside the ISR: {_many(after.eligible_leader_replicas)}"


def _elections(before: PartitionState, after: PartitionState) -> Iterator[str]:
    if after.leader != before.leader:
        if after.leader == NO_LEADER:
            yield f"no leader any longer, it was {before.leader}: offline"
        elif before.leader == NO_LEADER:
            yield f"online again, led by broker {after.leader}"
        else:
            yield f"leader moved {before.leader} → {after.leader}"
    elif after.leader_epoch != before.leader_epoch:
        yield f"{_leader(after.leader)}, elected anew"
    if _is_unclean(before, after):
        yield "UNCLEAN: the leader was not in sync, acknowledged records may be lost"
    elif after.leader_recovery_state < before.leader_recovery_state:
        yield "recovered from the unclean election"


def _is_unclean(before: PartitionState, after: PartitionState) -> bool:
    """Also holds if the leader before had not recovered yet from another unclean election."""
    if after.leader_recovery_state != RECOVERING:
        return False
    could_lead = (*before.isr, *before.eligible_leader_replicas, NO_LEADER)
    is_elected = after.leader != before.leader and after.leader not in could_lead
    return is_elected or before.leader_recovery_state != RECOVERING


def _moves(before: PartitionState, after: PartitionState) -> Iterator[str]:
    if after.adding_replicas != before.adding_replicas and after.adding_replicas:
        yield f"a reassignment adds {_brokers(after.adding_replicas)}"
    if after.removing_replicas != before.removing_replicas and after.removing_replicas:
        yield f"it will remove {_brokers(after.removing_replicas)}"
    was_moving = before.adding_replicas or before.removing_replicas
    if was_moving and not (after.adding_replicas or after.removing_replicas):
        done = "done" if set(after.replicas) != set(before.replicas) else "over"
        yield f"the reassignment is {done}: replicas {_many(after.replicas)}"


def _causes(
    together: Sequence[tuple[int, Change]], before: PartitionState, after: PartitionState
) -> Iterator[str]:
    """Finds what else the controller wrote at once about the brokers that came or went."""
    concerned = {*before.isr} ^ {*after.isr}
    concerned |= {*before.eligible_leader_replicas} ^ {*after.eligible_leader_replicas}
    if after.leader != before.leader:
        concerned |= {before.leader, after.leader}
    for _, change in together:
        match change:
            case records.BrokerRegistrationChangeRecord(broker_id=broker) if broker in concerned:
                yield from _registration_change(change)
            case records.RegisterBrokerRecord(broker_id=broker) if broker in concerned:
                yield f"broker {broker} registered anew"
            case records.UnregisterBrokerRecord(broker_id=broker) if broker in concerned:
                yield f"broker {broker} was unregistered"
            case _:
                pass


def _asked(before: PartitionState, after: PartitionState) -> tuple[str, ...]:
    """Guesses the cause of a change without such a record."""
    is_moving = (before.adding_replicas, before.removing_replicas) != (
        after.adding_replicas,
        after.removing_replicas,
    )
    if is_moving:
        return ()
    if after.leader != before.leader and set(after.isr) == set(before.isr):
        return ("elected as the preferred one",) * (after.leader == after.replicas[0])
    if after.leader == before.leader != NO_LEADER and set(after.isr) != set(before.isr):
        return ("its leader asked for it",)
    return ()


def _many(brokers: Sequence[int]) -> str:
    return "[" + ",".join(map(str, brokers)) + "]"


def _brokers(brokers: Sequence[int]) -> str:
    return f"broker{'s' * (len(brokers) != 1)} {', '.join(map(str, brokers))}"


def _leader(leader: int) -> str:
    return "no leader" if leader == NO_LEADER else f"leader {leader}"


# --- which one --------------------------------------------------------------------------------


Subject = PartitionStory | BrokerStory | ConfigStory  # `begin` tells what held before the log


def parse_subject(text: str) -> Subject:
    """A name with a number is a partition's: see `also_meant`. Raises ValueError."""
    if match := re.fullmatch(r"(?:broker[ :]?)?(\d+)", text):
        return BrokerStory(int(match[1]))
    if match := re.fullmatch(r"config[ :](.+)", text):
        return ConfigStory("" if match[1] == DEFAULT else match[1])
    if match := re.fullmatch(r"(.+)-(\d+)", text):
        return PartitionStory(match[1], int(match[2]))
    raise ValueError(
        f"{text!r}: name a partition (orders-3), a broker (broker 2), or a config (config orders)"
    )


def also_meant(subject: Subject, image: MetadataImage) -> Subject | None:
    """`broker-2` may also mean broker 2, unless there is a topic that is called `broker`."""
    match subject:
        case PartitionStory(topic="broker", index=index) if image.topic("broker") is None:
            return BrokerStory(index)
        case _:
            return None
