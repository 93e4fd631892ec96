"""A log as one reader sees it: consecutive entries of the tree, from where it starts to its end.

A log need not start at offset 0: what lies before is gone, and stands in a snapshot instead. The
`origin` of such a log is the entry that lies directly before its first; with it, entries that are
gone can still be told to be the same history or not.
"""

from bisect import bisect_right

from jepsen_like.sim.logs.logtree import Entry
from quorum.core.effects import EpochStart
from quorum.core.types import OffsetAndEpoch

__all__ = ["Content"]


class Content:
    __slots__ = ("entries", "origin", "start")

    def __init__(
        self,
        entries: list[Entry],
        origin: Entry | None = None,
        start: OffsetAndEpoch | None = None,
    ) -> None:
        """`start` is needed only where it cannot be told from `origin`: there may be none known."""
        self.entries = entries
        self.origin = origin
        if start is None:
            start = OffsetAndEpoch(0, -1) if origin is None else origin.end
        self.start = start

    def copy(self) -> "Content":
        return Content(list(self.entries), self.origin, self.start)

    @property
    def start_offset(self) -> int:
        return self.start.offset

    @property
    def is_origin_guessed(self) -> bool:
        """Did an empty log begin anew without knowing the epoch of what it stands behind?"""
        return not self.entries and self.start.epoch < 0

    @property
    def last(self) -> Entry | None:
        """The entry that the next one follows, which may be gone."""
        return self.entries[-1] if self.entries else self.origin

    @property
    def end_offset(self) -> int:
        return self.entries[-1].next_offset if self.entries else self.start.offset

    @property
    def end(self) -> OffsetAndEpoch:
        return self.entries[-1].end if self.entries else self.start

    def index_of(self, offset: int) -> int:
        """Where the entry is that holds `offset`, or the number of entries."""
        return bisect_right(self.entries, offset, key=lambda entry: entry.next_offset)

    def truncate(self, end_offset: int) -> None:
        del self.entries[self.index_of(end_offset) :]

    def trim(self, count: int) -> None:
        """The first `count` entries go."""
        if count:
            self.origin = self.entries[count - 1]
            self.start = self.origin.end
            del self.entries[:count]

    def holds(self, entry: Entry) -> bool:
        """Is `entry` in this log, or in what lay before its start?"""
        if self.entries and self.entries[0].base_offset <= entry.base_offset:
            at = entry.index - self.entries[0].index
            if not (at < len(self.entries) and self.entries[at] is entry):
                at = self.index_of(entry.base_offset)  # what was let go of may have been another
            return at < len(self.entries) and self.entries[at] is entry
        before = self.entries[0].parent if self.entries else self.origin
        while before is not None and before.index > entry.index:
            before = before.parent
        return before is entry

    def holds_or_starts_behind(self, entry: Entry) -> bool:
        """A follower begins anew behind `entry` where its leader's log starts there."""
        return self.start_offset >= entry.next_offset or self.holds(entry)

    def last_below(self, high_watermark: int) -> Entry | None:
        """The last entry below a high watermark; None if there is none, or if it is not known."""
        if high_watermark <= self.start_offset:
            is_first = high_watermark == self.start_offset  # all below has just been deleted
            return self.origin if is_first else None
        return self.entries[self.index_of(high_watermark - 1)]

    def epochs(self) -> tuple[EpochStart, ...]:
        """The leader epoch cache. A log that was reset remembers the epoch of what it replaces."""
        starts: list[EpochStart] = []
        for entry in self.entries:
            if not starts or starts[-1].epoch != entry.epoch:
                starts.append(EpochStart(entry.epoch, entry.base_offset))
        if not starts and self.start.epoch >= 0:
            starts.append(EpochStart(self.start.epoch, self.start.offset))
        return tuple(starts)
