"""What the shipped storage has promised of a log, and whether a restart finds it.

The `StoredLog` of a disk that runs the shipped storage is a ledger: `written` is what the process
has asked for, `durable` what it was told to be on the medium, `waiting` what lies between. None of
it is known to the storage. When the next process starts, the ledger is compared with what that
finds (S-DU), and continued from there:

- every record, vote and snapshot that was promised is there, but for what a truncation or a reset
  under way was about to remove;
- a record that was not promised may be there or not, but in its place: after those before it.
"""

from collections.abc import Mapping
from dataclasses import replace

from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.logs.logtree import Entry
from jepsen_like.sim.logs.stored_log import StoredLog, WriteEffect
from jepsen_like.sim.logs.stored_snapshots import is_whole
from jepsen_like.sim.violation import Violation
from quorum.core.effects import (
    Append,
    Durability,
    LogState,
    ResetLog,
    SaveElection,
    Token,
    Truncate,
)
from quorum.core.types import ElectionState, OffsetAndEpoch, ReplicaKey

__all__ = ["content_of", "found", "possible_last", "promise", "promised", "settle"]


def promise(stored: StoredLog, token: Token) -> None:
    """`Stored` with this token: each effect up to it is as durable as it asked to be."""
    tokens = [waiting.effect.token for waiting in stored.waiting]
    covered = tokens.index(token) + 1 if token in tokens else 0
    synced = [place for place in range(covered) if _is_synced(stored.waiting[place].effect)]
    through = synced[-1] + 1 if synced else 0
    stored.make_durable(through)
    saved = [
        waiting
        for waiting in stored.waiting[: covered - through]
        if isinstance(waiting.effect, SaveElection)
    ]
    for waiting in saved:
        assert isinstance(waiting.effect, SaveElection)
        stored.election = waiting.effect.election
        stored.waiting.remove(waiting)


def _is_synced(effect: WriteEffect) -> bool:
    match effect:
        case Append(durability=durability) | Truncate(durability=durability):
            return durability is Durability.SYNCED
        case ResetLog():
            return True
        case SaveElection():
            return False


def found(
    stored: StoredLog,
    state: LogState,
    records: bytes,
    election: ElectionState,
    snapshots: Mapping[OffsetAndEpoch, bytes],
) -> None:
    """A process has recovered this, and nothing else will be asked of the log's past."""
    if records:
        content = content_of(stored, state, records)
    elif state.start_offset:
        content = stored.anew(OffsetAndEpoch(state.start_offset, state.last_epoch))
    else:
        content = Content([])
    _has_records(stored, content, snapshots)
    _has_election(stored, election)
    _has_snapshots(stored, content.start_offset, snapshots)
    settle(stored, content)
    stored.durable, stored.written = content, content.copy()
    stored.election = election
    stored.snapshots.whole = dict(snapshots)


def content_of(stored: StoredLog, state: LogState, records: bytes) -> Content:
    """What a start has read, of a log that is not empty. Raises what its tree does if no log may
    look like that. A log of a partition, without snapshots, may start within a batch."""
    entries = stored.tree.extend(None, records)
    first, last = entries[0], entries[-1]
    start = None if stored.has_snapshots else OffsetAndEpoch(first.base_offset, -1)
    starts = range(first.base_offset, first.next_offset)
    starts = starts[:1] if stored.has_snapshots else starts
    if state.start_offset not in starts or last.next_offset != state.end_offset:
        raise Violation("S-DU", f"{state} is said of a log with {first} to {last}")
    for entry in entries:
        entry.is_public = True
    return Content(entries, first.parent, start)


def _has_records(
    stored: StoredLog, content: Content, snapshots: Mapping[OffsetAndEpoch, bytes]
) -> None:
    """A snapshot that was received may replace a log that was never committed."""
    last = promised(stored).last
    is_replaced = not content.entries and content.end in snapshots
    is_later = last is not None and not last.end.is_at_least(content.end)
    if last is not None and not content.holds(last) and not (is_replaced and is_later):
        raise Violation("S-DU", f"{last} was promised, and {content.end} is the end")
    if content.entries and content.entries[-1] not in possible_last(stored):
        raise Violation("S-DU", f"{content.entries[-1]} has come back, or never was there")


def promised(stored: StoredLog) -> Content:
    """What is synced and neither a truncation nor a reset under way was about to remove."""
    content = stored.durable.copy()
    for waiting in stored.waiting:
        match waiting.effect:
            case Truncate(end_offset=end_offset):
                content.truncate(end_offset)
            case ResetLog():
                return Content([])
    return content


def possible_last(stored: StoredLog) -> set[Entry]:
    """What may be the last in the log: it stands for all that comes before it."""
    return {*stored.durable.entries, *stored.written.entries}.union(
        *(waiting.entries for waiting in stored.waiting)
    )


def settle(stored: StoredLog, content: Content) -> None:
    """Nothing is under way any more: what a start has not found has never been."""
    for waiting in stored.waiting:
        for entry in waiting.entries:
            if not content.holds(entry):
                stored.tree.forget(entry)
    stored.waiting.clear()
    stored.wanted = None
    stored.failed = False


def _has_election(stored: StoredLog, election: ElectionState) -> None:
    effects = [waiting.effect for waiting in stored.waiting]
    under_way = [effect.election for effect in effects if isinstance(effect, SaveElection)]
    saved = [stored.election, *under_way]
    if not any(election in (each, _without_directory(each)) for each in saved):
        raise Violation("S-DU", f"{election} is on the disk, {saved} had been saved")


def _without_directory(election: ElectionState) -> ElectionState:
    """As the first version of quorum-state has it."""
    if election.voted is None:
        return election
    return replace(election, voted=ReplicaKey(election.voted.id))


def _has_snapshots(
    stored: StoredLog, start_offset: int, snapshots: Mapping[OffsetAndEpoch, bytes]
) -> None:
    for end in stored.snapshots.whole:
        if end.offset >= start_offset and end not in snapshots:
            raise Violation("S-DU", f"the snapshot {end} was promised, and is gone")
    for end, content in snapshots.items():
        if not is_whole(end, content):
            raise Violation("S-DU", f"the snapshot {end} is not whole")
