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

from controller.metadata.changes import Change, offsets_of
from controller.metadata.image import MetadataImage
from quorumlab.inspection.batches import Batch, Damage
from quorumlab.inspection.broker_story import BrokerStory
from quorumlab.inspection.concealing import shown_value
from quorumlab.inspection.entries import Unknown, entries
from quorumlab.inspection.partition_story import PartitionStory
from quorumlab.inspection.states import Replay, load_snapshot
from quorumlab.inspection.stream import target_batches
from quorumlab.inspection.target import Target, snapshot_id
from quorumlab.inspection.tree import DEFAULT
from quorumlab.output import one_line
from wire import metadata_records as records
from wire.control_records import ControlRecord
from wire.partition_block import decode

__all__ = ["ConfigStory", "Event", "Subject", "also_meant", "nearest", "parse_subject", "story"]

_NAMES_MAX = 20  # that are listed where none is near


@dataclass(slots=True)
class ConfigStory:
    """The story of what is configured of a topic, a broker, or another resource of that name."""

    name: str  # empty: what brokers have by default
    _values: dict[str, str] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f"config {self.name or DEFAULT}"

    def begin(self, start: Replay) -> Iterator[str]:
        for (type_, resource), values in start.image.configs.items():
            if resource == self.name:
                for name, value in values.items():
                    self._values[name] = shown_value(type_, name, value)
        for name, value in sorted(self._values.items()):
            yield f"{name} = {one_line(value)}"

    def tell(
        self, batch: Batch, changes: Sequence[tuple[int, Change]]
    ) -> Iterator[tuple[int, str]]:
        for offset, change in changes:
            match change:
                case records.ConfigRecord(resource_name=self.name, name=name, value=None):
                    yield offset, self._reset(name)
                case records.ConfigRecord(resource_name=self.name, name=name, value=str(value)):
                    shown = shown_value(change.resource_type, name, value)
                    yield offset, self._set(name, shown)
                case _:
                    pass

    def _reset(self, name: str) -> str:
        before = self._values.pop(name, "-")
        return f"{name} back to its default, it was {one_line(before)}"

    def _set(self, name: str, value: str) -> str:
        before = self._values.get(name)
        self._values[name] = value
        text = f"{name} = {one_line(value)}"
        return text if before is None else f"{text}, it was {one_line(before)}"


Subject = PartitionStory | BrokerStory | ConfigStory  # `begin` tells what held before the log


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    offset: int
    epoch: int
    timestamp_ms: int
    text: str


def story(target: Target, subject: Subject) -> Iterator[Event | Damage]:
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


# --- which one --------------------------------------------------------------------------------


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


def nearest(image: MetadataImage, subject: Subject) -> str:
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
