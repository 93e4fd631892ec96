"""The story of one thing: every record that touched it, as a sentence with its cause.

The subject is a partition (`orders-3`), a broker (`2` or `broker 2`) or what is configured of a
topic or broker (`config orders`). The cause of a partition's change is looked for among the other
records of its batch, since a controller writes what belongs together at once.

Source: what Kafka's controllers write in each case (KIP-631, KIP-497, KIP-841, KIP-966).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from controller.metadata.image import MetadataImage
from controller.metadata.partition_records import changed, state_of
from controller.metadata.partitions import NO_LEADER, RECOVERING, PartitionState
from quorumlab.inspection.batches import Damage
from quorumlab.inspection.entries import Entry, entries
from quorumlab.inspection.states import load_snapshot
from quorumlab.inspection.stream import log_batches
from quorumlab.inspection.target import Target, snapshot_id
from wire import metadata_records as records

__all__ = [
    "BrokerSubject",
    "ConfigSubject",
    "Event",
    "PartitionSubject",
    "Subject",
    "parse_subject",
    "story",
]


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
    image = _known_before(target)
    teller: _Teller
    match subject:
        case PartitionSubject():
            teller = PartitionStory(subject, image)
        case BrokerSubject():
            teller = BrokerStory(subject)
        case ConfigSubject():
            teller = ConfigStory(subject)
    for found in log_batches(target.segments):
        if isinstance(found, Damage):
            yield found
        elif not found.header.is_control:
            together = tuple(entries(found))
            for entry in together:
                for text in teller.tell(entry, together):
                    yield Event(
                        offset=entry.offset,
                        epoch=entry.epoch,
                        timestamp_ms=entry.timestamp_ms,
                        text=text,
                    )


def _known_before(target: Target) -> MetadataImage:
    """What the oldest snapshot of a log that was cut says; nothing of one that begins at 0."""
    is_cut = bool(target.segments) and int(target.segments[0].stem) > 0
    usable = [path for path in target.snapshots if snapshot_id(path)[0]]
    return load_snapshot(usable[0]).image if is_cut and usable else MetadataImage()


class _Teller(Protocol):
    def tell(self, entry: Entry, together: Sequence[Entry]) -> Iterator[str]:
        """What the record says of the subject; `together` are all records of its batch."""
        ...


# --- a partition ----------------------------------------------------------------------------


class PartitionStory:
    def __init__(self, subject: PartitionSubject, image: MetadataImage) -> None:
        self._subject = subject
        topic = image.topic(subject.topic)
        self._topic_id = None if topic is None else topic.id
        self._state: PartitionState | None = None
        if topic is not None:
            self._state = image.partition(topic.id, subject.index)

    def tell(self, entry: Entry, together: Sequence[Entry]) -> Iterator[str]:
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
                yield from _registration_change(entry.content)
            case records.RegisterBrokerRecord(broker_id=broker) if broker in concerned:
                yield f"broker {broker} registered anew"
            case records.UnregisterBrokerRecord(broker_id=broker) if broker in concerned:
                yield f"broker {broker} was unregistered"
            case _:
                pass


# --- a broker -------------------------------------------------------------------------------


class BrokerStory:
    """Its own life, and in one sentence a batch what that did to partitions."""

    def __init__(self, subject: BrokerSubject) -> None:
        self._id = subject.id

    def tell(self, entry: Entry, together: Sequence[Entry]) -> Iterator[str]:
        match entry.content:
            case records.RegisterBrokerRecord(broker_id=self._id) as record:
                state = "fenced" if record.fenced else "not fenced"
                where = ",".join(f"{e.name}://{e.host}:{e.port}" for e in record.end_points)
                yield f"registered with epoch {record.broker_epoch}, {state}, at {where}"
            case records.BrokerRegistrationChangeRecord(broker_id=self._id) as record:
                yield from _registration_change(record)
            case records.UnregisterBrokerRecord(broker_id=self._id):
                yield "unregistered"
            case records.FenceBrokerRecord(id=self._id):
                yield "fenced"
            case records.UnfenceBrokerRecord(id=self._id):
                yield "unfenced"
            case records.PartitionChangeRecord() if self._is_first(entry, together):
                yield from self._partitions(together)
            case _:
                pass

    def _is_first(self, entry: Entry, together: Sequence[Entry]) -> bool:
        changes = (e for e in together if isinstance(e.content, records.PartitionChangeRecord))
        return entry is next(changes)

    def _partitions(self, together: Sequence[Entry]) -> Iterator[str]:
        found = [entry.content for entry in together]
        changes = [each for each in found if isinstance(each, records.PartitionChangeRecord)]
        leads = sum(change.leader == self._id for change in changes)
        if leads:
            yield f"became the leader of {leads} partition{'s' * (leads != 1)}"


def _registration_change(record: records.BrokerRegistrationChangeRecord) -> Iterator[str]:
    if record.fenced:
        yield f"broker {record.broker_id} {'fenced' if record.fenced > 0 else 'unfenced'}"
    if record.in_controlled_shutdown:
        yield f"broker {record.broker_id} is shutting down in order"
    if record.log_dirs:
        yield f"broker {record.broker_id} has {len(record.log_dirs)} log directories online"


# --- a configuration ------------------------------------------------------------------------


class ConfigStory:
    def __init__(self, subject: ConfigSubject) -> None:
        self._name = subject.name
        self._values: dict[str, str] = {}

    def tell(self, entry: Entry, together: Sequence[Entry]) -> Iterator[str]:
        match entry.content:
            case records.ConfigRecord(resource_name=self._name, name=name, value=value):
                before = self._values.pop(name, None)
                if value is None:
                    yield f"{name} back to its default, it was {before}"
                    return
                self._values[name] = value
                yield f"{name} = {value}" + ("" if before is None else f", it was {before}")
            case _:
                pass


def _many(brokers: Sequence[int]) -> str:
    return "[" + ",".join(map(str, brokers)) + "]"


def _brokers(brokers: Sequence[int]) -> str:
    return f"broker{'s' * (len(brokers) != 1)} {', '.join(map(str, brokers))}"


def _leader(leader: int) -> str:
    return "no leader" if leader == NO_LEADER else f"leader {leader}"
