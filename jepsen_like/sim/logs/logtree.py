"""Every batch that any replica of a log ever wrote, as one tree for each log of a world.

An `Entry` is a batch together with everything before it: two logs that hold the same `Entry` object
are identical up to there, so comparing prefixes is comparing one reference. Interning is by value
(parent entry and bytes), and it is here that two invariants of `facts` 3.1 become visible at the
moment of a write, whoever writes, however briefly the batch lives:

- R-UE (of a partition: D-ONE): (epoch, offset) names one batch for ever;
- R-LM (of a partition: D-DIV): the same (epoch, offset) implies the same prefix.

With a `Tolerance` invariants are checked but do not end the run, so that only its history is
judged. They go on, since schedules ask them what has been committed. Once one is violated, others
may fail by their own assertions, and that is ignored, too. An assertion that fails before any
violation is a mistake in the invariant, and is raised.
"""

from dataclasses import dataclass, field
from uuid import UUID

from jepsen_like.sim.violation import Violation
from quorum.core.storage import METADATA_LOG
from quorum.core.types import OffsetAndEpoch, ReplicaKey
from wire.batch import headers, records_of
from wire.control_records import Voters as VotersRecord
from wire.control_records import decode_control
from wire.primitives import METADATA_TOPIC_ID

__all__ = ["Entry", "LogTree", "LogTrees", "Tolerance", "Voters", "voters_named_in"]


Voters = tuple[ReplicaKey, ...]


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Entry:
    """One batch in its place. Compared by identity."""

    parent: "Entry | None"
    records: bytes
    base_offset: int
    next_offset: int
    epoch: int
    is_control: bool = False
    is_public: bool = False  # written more than once, durable on some disk, or exposed
    index: int = field(init=False)  # how many batches lie before it
    # Of the metadata log: who votes once this is written; None where no record has named them.
    voters: Voters | None = field(init=False)

    def __post_init__(self) -> None:
        parent = self.parent
        self.index = 0 if parent is None else parent.index + 1
        self.voters = None if parent is None else parent.voters
        if self.is_control:
            self.voters = voters_named_in(self.records) or self.voters

    @property
    def end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.next_offset, self.epoch)

    def __repr__(self) -> str:
        return f"[{self.base_offset},{self.next_offset})@{self.epoch}"


class LogTree:
    """The tree of one log name, over all nodes and all time."""

    __slots__ = ("_by_end", "_by_place", "_children", "_let_go", "_one_batch", "_one_prefix")

    def __init__(self, one_batch: str = "R-UE", one_prefix: str = "R-LM") -> None:
        """The ids under which the two rules are reported."""
        self._one_batch = one_batch
        self._one_prefix = one_prefix
        self._children: dict[tuple[Entry | None, bytes], Entry] = {}
        self._by_place: dict[tuple[int, int], Entry] = {}
        self._by_end: dict[OffsetAndEpoch, Entry] = {}
        self._let_go: dict[int, list[Entry]] = {}  # by the offset behind them

    def let_go(self, last: Entry) -> None:
        """A log starts behind `last`: whoever goes on there need not have what was before."""
        known = self._let_go.setdefault(last.next_offset, [])
        if last in known:
            known.remove(last)
        known.append(last)

    def before(self, start_offset: int) -> Entry | None:
        """The last that was let go of by the logs that start there."""
        return self._let_go[start_offset][-1] if start_offset in self._let_go else None

    def latest_before(self, start_offset: int) -> Entry | None:
        """Return what an empty log stands behind that begins there: what was written last.

        A follower whose offset is behind its leader's end begins anew at that end."""
        found = [each for each in self._by_end.values() if each.next_offset == start_offset]
        return max(found, key=lambda each: each.epoch, default=self.before(start_offset))

    def ending_at(self, end: OffsetAndEpoch) -> Entry | None:
        """The entry whose last record is the one before `end.offset`, of `end.epoch`."""
        return self._by_end.get(end)

    def at(self, epoch: int, base_offset: int) -> Entry | None:
        """The batch of this epoch that begins there."""
        return self._by_place.get((epoch, base_offset))

    def extend(
        self, parent: Entry | None, batches: bytes, *, is_guessed: bool = False
    ) -> list[Entry]:
        """The entries of whole batches written after `parent` (None: at the start of the log).

        `is_guessed`: nobody knows what the log stands behind, since it was empty and began anew.
        """
        entries: list[Entry] = []
        for position, header in headers(batches):
            records = batches[position : position + header.size_bytes]
            entry = self._children.get((parent, records))
            if entry is None:
                place = header.leader_epoch, header.base_offset
                entry = self._rejoining(None if is_guessed else parent, place, records)
            if entry is None:
                if parent is None and header.base_offset > 0:
                    # The log of this leader is empty, and begins behind records that were deleted.
                    parent = self.before(header.base_offset)
                entry = Entry(
                    parent=parent,
                    records=records,
                    base_offset=header.base_offset,
                    next_offset=header.next_offset,
                    epoch=header.leader_epoch,
                    is_control=header.is_control,
                )
                self._add(entry)
            else:
                entry.is_public = True
            entries.append(entry)
            parent, is_guessed = entry, False
        return entries

    def _rejoining(
        self, parent: Entry | None, place: tuple[int, int], records: bytes
    ) -> Entry | None:
        """A partition's follower goes on where its leader's log starts, whatever was before."""
        entry, base_offset = self._by_place.get(place), place[1]
        if entry is None or entry.records != records:
            return None
        if parent is None and base_offset > 0:
            return entry
        return entry if entry.parent in self._let_go.get(base_offset, ()) else None

    def forget(self, entry: Entry) -> None:
        """A crash took `entry` from the only disk that it was on, before anybody saw it.

        Then its place is free again: a candidate that crashes on becoming leader may win the same
        epoch once more, since neither its leadership nor its first record had been heard of.
        """
        if not entry.is_public:
            self._by_place.pop((entry.epoch, entry.base_offset), None)
            self._by_end.pop(entry.end, None)
            self._children.pop((entry.parent, entry.records), None)

    def _add(self, entry: Entry) -> None:
        expected = 0 if entry.parent is None else entry.parent.next_offset
        if entry.base_offset != expected:
            raise Violation(self._one_prefix, f"batch {entry} written where {expected} comes next")
        if entry.parent is not None and entry.epoch < entry.parent.epoch:
            raise Violation(
                self._one_prefix, f"batch {entry} written after {entry.parent}: the epoch fell"
            )
        place = (entry.epoch, entry.base_offset)
        other = self._by_place.setdefault(place, entry)
        if other is not entry:
            is_same = other.records == entry.records
            rule = self._one_prefix if is_same else self._one_batch
            what = "prefixes" if is_same else "batches"
            raise Violation(rule, f"two {what} at epoch {entry.epoch} offset {entry.base_offset}")
        self._children[(entry.parent, entry.records)] = entry
        self._by_end[entry.end] = entry


def voters_named_in(batch: bytes) -> Voters | None:
    """By the first batch, if it is a control batch; those of partition logs end transactions."""
    for record in records_of(batch):
        match decode_control(record):
            case VotersRecord(voters=voters):
                return tuple(ReplicaKey(each.voter_id, each.voter_directory_id) for each in voters)
    return None


class Tolerance:
    """A run tolerates what a judge raises in such a block, and leaves the rest of it out."""

    __slots__ = ("is_broken",)

    def __init__(self) -> None:
        self.is_broken = False  # has an invariant been violated?

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, Violation):
            self.is_broken = True
            return True
        return self.is_broken and isinstance(error, LookupError | AssertionError)


class LogTrees:
    def __init__(self, tolerance: Tolerance | None = None) -> None:
        """With `tolerance`: two batches may have one place."""
        self._tolerance = tolerance
        self._trees: dict[tuple[str, UUID], LogTree] = {}

    def of(self, log: str, topic_id: UUID) -> LogTree:
        if log == METADATA_LOG:
            topic_id = METADATA_TOPIC_ID
        known = self._trees.get((log, topic_id))
        if known is None:
            known = self._trees[log, topic_id] = self._new(log)
        return known

    def _new(self, log: str) -> LogTree:
        rules = () if log == METADATA_LOG else ("D-ONE", "D-DIV")
        if self._tolerance is None:
            return LogTree(*rules)
        return _TolerantTree(self._tolerance, *rules)


class _TolerantTree(LogTree):
    """A tree all the same, which knows the latest of the batches that have one place."""

    __slots__ = ("_tolerance",)

    def __init__(self, tolerance: Tolerance, *rules: str) -> None:
        super().__init__(*rules)
        self._tolerance = tolerance

    def _add(self, entry: Entry) -> None:
        with self._tolerance:
            super()._add(entry)
        self._children[(entry.parent, entry.records)] = entry
        self._by_end[entry.end] = entry
