"""The metadata log of a live quorum as it grows: its image, its newest records, and stories.

A thread of its own reads; whoever asks gets what is known so far, and never waits. The log is kept
in a scratch directory, so that stories are told without the cluster, too.
"""

import shutil
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypeGuard

from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.batches import Batch, Damage
from quorumlab.inspection.concealing import concealed
from quorumlab.inspection.entries import Entry, TopicNames, as_text, entries, time_text
from quorumlab.inspection.live import LiveLog, NoQuorum, mirrored
from quorumlab.inspection.states import Moment, Replay, replay
from quorumlab.inspection.stories import Event, parse_subject, story
from quorumlab.inspection.stream import target_batches
from quorumlab.inspection.target import Address, Target
from quorumlab.inspection.tree import DEFAULT
from quorumlab.top.cluster_view import LogEntry, Partitions, of_image
from wire.metadata_records import MetadataRecord, NoOpRecord

__all__ = ["LogFollower", "log_entry"]

_ENTRIES_MAX = 1000
_BATCHES_AT_FIRST = 100
_NO_OP_BYTES = 73  # a batch of one record without fields, as it comes twice a second
_AGAIN_SECONDS = 0.5
_LIMIT_SECONDS = 2.0  # for an answer, which may take half a second where nothing is new


class LogFollower:
    def __init__(self, addresses: Sequence[Address], scratch: Path) -> None:
        self.addresses = addresses  # nodes to ask, of which some may be down
        self.is_loading = True
        self.problem = "reading the metadata log ..."
        self.state: Replay | None = None
        self.end: int | None = None
        self.log: tuple[LogEntry, ...] = ()
        self._scratch = scratch
        self._target: Target | None = None
        self._recent: deque[LogEntry] = deque(maxlen=_ENTRIES_MAX)
        self._names = TopicNames()
        self._stories: dict[LogEntry, Sequence[str]] = {}
        self._counted: tuple[object, Partitions] | None = None

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="metadata-log").start()

    @property
    def partitions(self) -> Partitions | None:
        """None before the log has been read."""
        state = self.state
        if state is None:
            return None
        table = state.image.partitions
        if self._counted is None or self._counted[0] is not table:
            self._counted = table, of_image(state.image)
        return self._counted[1]

    @property
    def target(self) -> Target | None:
        """The log as far as it has been read, in files; another one after the log was read anew."""
        return self._target

    # --- following ---------------------------------------------------------------------------

    def _run(self) -> None:
        for number in count():
            for address in self.addresses:
                try:
                    self._follow(address, self._scratch / str(number))
                except NoQuorum as error:
                    self.problem, self.is_loading = str(error), False
                    return
                except Exception as error:  # noqa: BLE001  # told, and then begun anew
                    self.problem = f"log: {error}"
                    time.sleep(_AGAIN_SECONDS)
            self.is_loading = False  # none of them could be followed

    def _follow(self, address: Address, directory: Path) -> None:
        """Raises ClusterError when nobody leads for long, or the log has to be read anew."""
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        target = mirrored(address, directory, limit_seconds=_LIMIT_SECONDS)
        state = replay(target, Moment())
        self._names.learn_topics(state.image)
        self._recent.clear()
        telling = (found for found in target_batches(target) if _may_tell(found))
        for batch in deque(telling, maxlen=_BATCHES_AT_FIRST):
            self._show(batch)
        before, self._target = self._target, replace(target, high_watermark=None)
        self.state = state
        self._publish(state.image.at.offset)
        if before is not None and before.segments:
            shutil.rmtree(before.segments[0].parent.parent, ignore_errors=True)
        live = LiveLog(address, limit_seconds=_LIMIT_SECONDS)
        live.position = state.image.at
        while True:
            for batch in live.batches():
                self._take(state, batch, target.segments[0])
            self._publish(live.position.offset)

    def _take(self, state: Replay, batch: Batch, segment: Path) -> None:
        with segment.open("ab") as file:
            file.write(batch.content)
        state.take(batch)
        self._show(batch)

    def _publish(self, end: int) -> None:
        self.problem, self.end, self.log = "", end, tuple(self._recent)
        self.is_loading = False

    def _show(self, batch: Batch) -> None:
        found: deque[Entry] = deque(maxlen=_ENTRIES_MAX)  # the text of no more is ever shown
        for entry in entries(batch):
            self._names.learn(entry)
            if not isinstance(entry.content, NoOpRecord):
                found.append(entry)
        self._recent.extend(log_entry(entry, self._names) for entry in found)

    # --- stories -----------------------------------------------------------------------------

    def why(self, entry: LogEntry) -> Sequence[str] | None:
        """The story of what the entry is about, up to now; None while it is read."""
        if entry not in self._stories:
            self._stories = {entry: ()}  # one is read at a time, and is read anew later
            threading.Thread(target=self._tell, args=(entry,), daemon=True).start()
        return self._stories.get(entry) or None

    def forget_why(self) -> None:
        self._stories = {}

    def _tell(self, entry: LogEntry) -> None:
        try:
            self._stories[entry] = self._told(entry)
        except (ClusterError, OSError, ValueError) as error:
            self._stories[entry] = (f"the story cannot be told: {error}",)

    def _told(self, entry: LogEntry) -> Sequence[str]:
        if not entry.subject:
            return ("no partition, broker or configuration: it has no story",)
        if self.target is None:
            return ("the log has not been read",)
        return [
            f"{each.offset:>6} {time_text(each.timestamp_ms)} epoch {each.epoch}: {each.text}"
            if isinstance(each, Event)
            else str(each)
            for each in story(self.target, parse_subject(entry.subject))
        ] or ("nothing is known of it any longer",)


def log_entry(entry: Entry, names: TopicNames) -> LogEntry:
    if isinstance(entry.content, MetadataRecord):
        entry = replace(entry, content=concealed(entry.content))
    _, _, data = as_text(entry, names).partition(entry.type)
    at = time_text(entry.timestamp_ms)[11:19]
    text = f"{entry.offset} {at} {entry.type.removesuffix('_RECORD')} {data.strip()}".rstrip()
    return LogEntry(entry.offset, text, _subject(names.facts(entry)))


def _subject(facts: Mapping[str, Any]) -> str:
    """The thing that the record is about, as `inspect why` takes it."""
    match facts:
        case {"topic": str(topic), "partition": int(partition)}:
            return f"{topic}-{partition}"
        case {"topic": str(topic)}:
            return f"{topic}-0"
        case {"type": "CONFIG_RECORD", "resourceName": str(name)}:
            return f"config {name or DEFAULT}"
        case {"broker": int(broker)}:
            return f"broker {broker}"
        case _:
            return ""


def _may_tell(found: Batch | Damage) -> TypeGuard[Batch]:
    """Is it more than what a quorum writes when it has nothing to say?"""
    return isinstance(found, Batch) and found.header.size_bytes > _NO_OP_BYTES
