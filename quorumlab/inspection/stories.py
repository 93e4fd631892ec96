"""The story of one thing: every record that touched it, as a sentence with its cause.

The subject is a partition (`orders-3`), a broker (`2` or `broker 2`) or what is configured of a
topic or broker (`config orders`). The cause of a partition's change is looked for among the other
records of its batch, since a controller writes what belongs together at once.

Source: what Kafka's controllers write in each case (KIP-631, KIP-497, KIP-841, KIP-966).
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from controller.metadata.image import MetadataImage
from controller.metadata.partition_records import changed, state_of
from controller.metadata.partitions import NO_LEADER, RECOVERING, PartitionState
from quorumlab.inspection.batches import Batch, Damage
from quorumlab.inspection.broker_story import BrokerStory, registration_change
from quorumlab.inspection.entries import Entry, entries
from quorumlab.inspection.states import Replay, load_snapshot
from quorumlab.inspection.stream import target_batches
from quorumlab.inspection.target import Target, snapshot_id
from wire import metadata_records as records

__all__ = [
    "BrokerSubject",
    "ConfigSubject",
    "Event",
    "PartitionSubject",
    "Subject",
    "nearest",
    "parse_subject",
    "story",
]

_NAMES_MAX = 20  # that are listed where none is near


@dataclass(frozen=True, slots=True)
class PartitionSubject:
    topic: str
    index: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


@dataclass(frozen=True, slots=True)
class BrokerSubject:
    id: int

    def __str__(self) -> str:
        return f"broker {self.id}"


@dataclass(frozen=True, slots=True)
class ConfigSubject:
    name: str  # of a topic, or of a broker

    def __str__(self) -> str:
        return f"config {self.name}"


Subject = PartitionSubject | BrokerSubject | ConfigSubject


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    offset: int
    epoch: int
    timestamp_ms: int
    text: str


def parse_subject(text: str) -> Subject:
    """Raises ValueError."""
    if match := re.fullmatch(r"(?:broker[ -:]?)?(\d+)", text):
        return BrokerSubject(int(match[1]))
    if match := re.fullmatch(r"config[ :](.+)", text):
        return ConfigSubject(match[1])
    if match := re.fullmatch(r"(.+)-(\d+)", text):
        return PartitionSubject(match[1], int(match[2]))
    raise ValueError(
        f"{text!r}: name a partition (orders-3), a broker (broker 2), or a config (config orders)"
    )


def story(target: Target, subject: Subject) -> Iterator[Event | Damage]:
    """What happened to it, in order."""
    start = _known_before(target)
    teller = _teller(subject, start)
    at = start.image.at
    for text in teller.known():
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
            told = teller.tell(found, tuple(entries(found)))
            for entry, text in sorted(told, key=lambda each: each[0].offset):
                yield Event(
                    offset=entry.offset,
                    epoch=entry.epoch,
                    timestamp_ms=entry.timestamp_ms,
                    text=text,
                )


def _known_before(target: Target) -> Replay:
    """What the oldest snapshot of a log that was cut says; nothing of one that begins at 0."""
    is_cut = bool(target.segments) and target.segments[0].stem.strip("0") != ""
    usable = [path for path in target.snapshots if snapshot_id(path)[0]]
    is_alone = not target.segments
    return load_snapshot(usable[0]) if (is_cut or is_alone) and usable else Replay()


def nearest(image: MetadataImage, subject: Subject) -> str:
    """What may have been meant by a subject that no record touches."""
    match subject:
        case PartitionSubject(topic=name):
            topic = image.topic(name)
            if topic is not None:
                return f"topic {name} has {topic.partition_count} partitions"
            known = sorted(image.topics.by_name)
        case BrokerSubject():
            return f"there are brokers {', '.join(map(str, sorted(image.brokers))) or '-'}"
        case ConfigSubject(name=name):
            known = sorted(resource for _, resource in image.configs)
    close = difflib.get_close_matches(name, known, n=3)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"there are {', '.join(known[:_NAMES_MAX]) or 'none'}"


class _Teller(Protocol):
    def known(self) -> Iterator[str]:
        """What held of the subject before the first record."""
        ...

    def tell(self, batch: Batch, together: Sequence[Entry]) -> Iterator[tuple[Entry, str]]:
        """What the records of a batch say of the subject."""
        ...


def _teller(subject: Subject, start: Replay) -> _Teller:
    match subject:
        case PartitionSubject():
            return PartitionStory(subject, start.image)
        case BrokerSubject():
            return BrokerStory(subject.id, start)
        case ConfigSubject():
            return ConfigStory(subject, start.image)


# --- a partition ----------------------------------------------------------------------------


class PartitionStory:
    def __init__(self, subject: PartitionSubject, image: MetadataImage) -> None:
        self._subject = subject
        topic = image.topic(subject.topic)
        self._topic_id = None if topic is None else topic.id
        self._state: PartitionState | None = None
        if topic is not None:
            self._state = image.partition(topic.id, subject.index)

    def known(self) -> Iterator[str]:
        if self._state is not None:
            state = self._state
            isr, leader = _many(state.isr), _leader(state.leader)
            yield f"on {_many(state.replicas)}, ISR {isr}, {leader}"

    def tell(self, batch: Batch, together: Sequence[Entry]) -> Iterator[tuple[Entry, str]]:
        for entry in together:
            for text in self._told(entry, together):
                yield entry, text

    def _told(self, entry: Entry, together: Sequence[Entry]) -> Iterator[str]:
        match entry.content:
            case records.TopicRecord(name=name, topic_id=topic_id) if name == self._subject.topic:
                self._topic_id, self._state = topic_id, None
            case records.RemoveTopicRecord(topic_id=topic_id) if topic_id == self._topic_id:
                self._topic_id = self._state = None
                yield "the topic was deleted"
            case records.PartitionRecord() as record if self._is_it(record):
                self._state = state_of(record)
                isr, leader = _many(record.isr), _leader(record.leader)
                yield f"created on {_many(record.replicas)}, ISR {isr}, {leader}"
            case records.PartitionChangeRecord() as record if self._is_it(record):
                yield from self._changed(record, together)
            case _:
                pass

    def _is_it(self, record: records.PartitionRecord | records.PartitionChangeRecord) -> bool:
        return (record.topic_id, record.partition_id) == (self._topic_id, self._subject.index)

    def _changed(
        self, record: records.PartitionChangeRecord, together: Sequence[Entry]
    ) -> Iterator[str]:
        if self._state is None:
            yield "changed, but its creation is not in what is left of the log"
            return
        before, self._state = self._state, changed(self._state, record)
        causes = tuple(_causes(together, before, self._state))
        parts = [*_changes(before, self._state)] or ["written again, with nothing changed"]
        because = f" ({'; '.join(causes)})" if causes else ""
        epochs = f"partition epoch {self._state.partition_epoch}"
        if self._state.leader_epoch != before.leader_epoch:
            epochs = f"leader epoch {self._state.leader_epoch}, {epochs}"
        yield f"{'; '.join(parts)}{because}; {epochs}"


def _changes(before: PartitionState, after: PartitionState) -> Iterator[str]:
    """In words, the most important first."""
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
            yield f"broker {after.leader} leads again"
        else:
            yield f"leader moved {before.leader} → {after.leader}"
    elif after.leader_epoch != before.leader_epoch:
        yield f"{_leader(after.leader)}, elected anew"
    if after.leader_recovery_state != before.leader_recovery_state:
        if after.leader_recovery_state == RECOVERING:
            yield "UNCLEAN: the leader was not in sync, acknowledged records may be lost"
        else:
            yield "recovered from the unclean election"


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
    together: Sequence[Entry], before: PartitionState, after: PartitionState
) -> Iterator[str]:
    """What else the controller wrote at once, of the brokers that came or went."""
    concerned = {*before.isr} ^ {*after.isr}
    concerned |= {*before.eligible_leader_replicas} ^ {*after.eligible_leader_replicas}
    if after.leader != before.leader:
        concerned |= {before.leader, after.leader}
    for entry in together:
        match entry.content:
            case records.BrokerRegistrationChangeRecord(broker_id=broker) if broker in concerned:
                yield from registration_change(entry.content)
            case records.RegisterBrokerRecord(broker_id=broker) if broker in concerned:
                yield f"broker {broker} registered anew"
            case records.UnregisterBrokerRecord(broker_id=broker) if broker in concerned:
                yield f"broker {broker} was unregistered"
            case _:
                pass


# --- a configuration ------------------------------------------------------------------------


class ConfigStory:
    """Of a topic, a broker, or whatever else has the name."""

    def __init__(self, subject: ConfigSubject, image: MetadataImage) -> None:
        self._name = subject.name
        self._values: dict[str, str] = {}
        for (_, name), values in image.configs.items():
            if name == subject.name:
                self._values |= values

    def known(self) -> Iterator[str]:
        for name, value in sorted(self._values.items()):
            yield f"{name} = {value}"

    def tell(self, batch: Batch, together: Sequence[Entry]) -> Iterator[tuple[Entry, str]]:
        for entry in together:
            match entry.content:
                case records.ConfigRecord(resource_name=self._name, name=name, value=value):
                    yield entry, self._set(name, value)
                case _:
                    pass

    def _set(self, name: str, value: str | None) -> str:
        before = self._values.pop(name, None)
        if value is None:
            return f"{name} back to its default, it was {before}"
        self._values[name] = value
        return f"{name} = {value}" + ("" if before is None else f", it was {before}")


def _many(brokers: Sequence[int]) -> str:
    return "[" + ",".join(map(str, brokers)) + "]"


def _brokers(brokers: Sequence[int]) -> str:
    return f"broker{'s' * (len(brokers) != 1)} {', '.join(map(str, brokers))}"


def _leader(leader: int) -> str:
    return "no leader" if leader == NO_LEADER else f"leader {leader}"
