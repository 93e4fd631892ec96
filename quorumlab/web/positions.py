"""The cluster as it was after every offset of a log, near states that are kept.

Images share what did not change, so a few hundred of them cost little more than one. A state is
kept with the place in the file behind it, so that nobody reads from the beginning again.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from quorumlab.inspection.batches import Batch, Complaints, Damage, read_batches
from quorumlab.inspection.entries import Entry, TopicNames, entries
from quorumlab.inspection.states import Moment, Replay, replay
from quorumlab.inspection.target import Target

__all__ = ["Positions"]

_RECORDS_BETWEEN = 2000  # some tens of milliseconds to read and to apply


class _Kept(NamedTuple):
    """At the end of a batch."""

    state: Replay
    position: int  # of the next batch, in bytes

    @property
    def end_offset(self) -> int:
        return self.state.image.at.offset


class Positions:
    """`target`: a log in one file, which may grow; what was read of it does not change."""

    def __init__(self, target: Target, *, records_between: int = _RECORDS_BETWEEN) -> None:
        """`records_between`: at least so many lie between two states that are kept."""
        self.target = target
        self._records_between = records_between
        (self._file,) = target.segments
        self._read = _start(target)
        self._position = 0
        self._kept = [_Kept(replace(self._read), 0)]  # by offset

    @property
    def first(self) -> int:
        """The first offset of which the state is known; -1: nothing had happened yet."""
        return self._kept[0].end_offset - 1

    def after(self, offset: int) -> Replay:
        """The state once the record at `offset` was applied, or the nearest there is."""
        if offset >= self._read.image.at.offset:
            self._read_on()
        start = self._kept_before(offset)
        state = replace(start.state, problems=Complaints())
        for batch in self._batches(start, offset):
            if batch.header.last_offset <= offset:
                state.take(batch)
                continue
            for entry in entries(batch):
                if entry.offset <= offset:
                    state.take_one(entry)
        return state

    def entries_until(self, offset: int) -> Iterator[tuple[Entry, TopicNames]]:
        """The last few thousand records up to `offset`, the oldest first."""
        start = self._kept_before(offset - self._records_between)
        names = TopicNames()
        names.learn_topics(start.state.image)
        for batch in self._batches(start, offset):
            for entry in entries(batch):
                names.learn(entry)
                if entry.offset <= offset:
                    yield entry, names

    def _batches(self, start: _Kept, offset: int) -> Iterator[Batch]:
        """From `start` to the one with `offset`."""
        for found in read_batches(self._file, start.position):
            if isinstance(found, Damage):
                continue  # a batch is just being written, or the copy's disk is bad
            if found.header.base_offset > offset:
                return
            yield found

    def _kept_before(self, offset: int) -> _Kept:
        before = [each for each in self._kept if each.end_offset <= offset + 1]
        return before[-1] if before else self._kept[0]

    def _read_on(self) -> None:
        for found in read_batches(self._file, self._position):
            if isinstance(found, Damage):
                continue
            self._read.take(found)
            self._position = found.position + found.header.size_bytes
            if self._read.image.at.offset - self._kept[-1].end_offset >= self._records_between:
                self._kept.append(_Kept(replace(self._read), self._position))


def _start(target: Target) -> Replay:
    """The oldest state that the log allows: its oldest snapshot, or nothing at all."""
    first = int(target.segments[0].stem)
    return replay(replace(target, segments=()), Moment()) if first else Replay()
