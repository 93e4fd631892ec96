"""The summary of a log: counts, epochs, voters and problems of all of it.

Every count is bounded: a log of any size takes the same memory.
"""

from collections import Counter, deque
from dataclasses import dataclass, field, replace

from quorumlab.inspection.batches import Batch, Complaints, Damage
from quorumlab.inspection.entries import Entry, Unknown, entries
from quorumlab.inspection.identity import Identity, Voter, VoterSet, voters_of
from quorumlab.inspection.stream import target_batches
from quorumlab.inspection.target import Target, is_torn, snapshot_id
from wire.control_records import KRaftVersion, LeaderChange, Voters
from wire.foreign_records import ForeignRecord
from wire.metadata_records import NoOpRecord, RegisterControllerRecord
from wire.partition_block import counted
from wire.record_json import type_name

__all__ = ["Summary", "committed", "notes", "summarize"]

_EPOCHS_MAX = 1000  # the newest
_FLOOD_SHARE = 0.5  # of NoOpRecords among all, above which people wonder


@dataclass(slots=True, kw_only=True)
class Epoch:
    epoch: int
    leader: int  # -1: not told
    start_offset: int
    end_offset: int
    since_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Busiest:
    """The second in which most records were written."""

    second: int = -1  # since 1970
    records: int = 0


@dataclass(slots=True, kw_only=True)
class Summary:
    """All records together. Offsets are inclusive at the start and exclusive at the end."""

    problems: Complaints = field(default_factory=Complaints)
    torn_tail: str = ""  # one of them: a write that was cut off, or is under way
    start_offset: int = -1
    end_offset: int = -1
    first_ms: int = -1
    last_ms: int = -1
    batches: int = 0
    records: int = 0
    bytes: int = 0
    types: Counter[str] = field(default_factory=Counter)
    epoch_count: int = 0
    epochs: deque[Epoch] = field(default_factory=lambda: deque(maxlen=_EPOCHS_MAX))
    voters: VoterSet = field(default_factory=VoterSet)
    kraft_version: int = 0
    busiest: Busiest = field(default_factory=Busiest)
    controllers: dict[int, tuple[str, ...]] = field(default_factory=dict)  # endpoints, by id

    @property
    def seconds(self) -> float:
        return max(self.last_ms - self.first_ms, 0) / 1000

    def per_second(self, count: int) -> float:
        return round(count / self.seconds, 3) if self.seconds else 0.0


def summarize(target: Target, known: Identity) -> Summary:
    """Reads all of it."""
    summary = Summary(voters=known.voters)
    for problem in known.problems:
        summary.problems.add(problem)
    now = Busiest()
    for found in target_batches(target):
        if isinstance(found, Damage):
            summary.problems.add(found)
            if found.path == target.files[-1] and is_torn(found):
                summary.torn_tail = str(found)
            continue
        if found.header.is_control or not summary.epochs:
            _note_epoch(summary, found)
        _count(summary, found)
        now = _second(summary, found, now)
        if not _count_many(summary, found):
            _count_each(summary, found)
    summary.voters = _with_endpoints(summary)
    return summary


def _count(summary: Summary, batch: Batch) -> None:
    header = batch.header
    if summary.start_offset < 0:
        summary.start_offset = header.base_offset
        summary.first_ms = header.base_timestamp_ms
    summary.end_offset = header.next_offset
    summary.last_ms = max(summary.last_ms, header.max_timestamp_ms)
    summary.batches += 1
    summary.records += header.record_count
    summary.bytes += header.size_bytes
    summary.epochs[-1].end_offset = header.next_offset


def _second(summary: Summary, batch: Batch, now: Busiest) -> Busiest:
    second = batch.header.base_timestamp_ms // 1000
    counted = now.records if second == now.second else 0
    now = Busiest(second=second, records=counted + batch.header.record_count)
    if now.records > summary.busiest.records:
        summary.busiest = now
    return now


def _count_many(summary: Summary, batch: Batch) -> bool:
    """Count without making a value of every record, if all of them are known."""
    if batch.header.is_control:
        return False
    try:
        found = list(counted(batch.content))
    except ValueError:  # whatever a reader of batches or records refuses
        return False
    if any(isinstance(record, ForeignRecord) for record, _ in found):
        return False
    for record, count in found:
        summary.types[type_name(type(record))] += count
        _note_controller(summary, record)
    return True


def _note_controller(summary: Summary, record: object) -> None:
    if isinstance(record, RegisterControllerRecord):
        where = tuple(f"{e.name}://{e.host}:{e.port}" for e in record.end_points)
        summary.controllers[record.controller_id] = where


def _count_each(summary: Summary, batch: Batch) -> None:
    for entry in entries(batch):
        summary.types[entry.type] += 1
        _note_controller(summary, entry.content)
        if isinstance(entry.content, Unknown):
            reason = entry.content.reason
            summary.problems.add(f"{batch.path} at offset {entry.offset}: {reason}")


def _note_epoch(summary: Summary, batch: Batch) -> None:
    """Control records say who leads, since when, and who votes."""
    header = batch.header
    if not summary.epochs or summary.epochs[-1].epoch != header.leader_epoch:
        started = Epoch(
            epoch=header.leader_epoch,
            leader=-1,
            start_offset=header.base_offset,
            end_offset=header.next_offset,
            since_ms=header.base_timestamp_ms,
        )
        summary.epochs.append(started)
        summary.epoch_count += 1
    for entry in entries(batch):
        _note_control(summary, entry)


def _note_control(summary: Summary, entry: Entry) -> None:
    match entry.content:
        case LeaderChange(leader_id=leader_id, voters=voters):
            summary.epochs[-1].leader = leader_id
            if not summary.kraft_version and not summary.voters.is_dynamic:
                ids = tuple(Voter(id=voter.voter_id) for voter in voters)
                source = f"LeaderChange at offset {entry.offset} (static voters)"
                summary.voters = VoterSet(voters=ids, source=source)
        case KRaftVersion(kraft_version=version):
            summary.kraft_version = version
        case Voters():
            summary.voters = voters_of(entry.content, f"the record at offset {entry.offset}")
        case _:
            pass


def _with_endpoints(summary: Summary) -> VoterSet:
    """Static voters are told without; but controllers register with theirs (KIP-919)."""
    voters = tuple(
        voter
        if voter.endpoints
        else replace(voter, endpoints=summary.controllers.get(voter.id, ()))
        for voter in summary.voters.voters
    )
    return replace(summary.voters, voters=voters)


# --- what follows from it -------------------------------------------------------------------


def committed(target: Target, known: Identity, summary: Summary) -> tuple[int, str]:
    """Returns the offset before which all is known to be committed, and why; -1 if unknown."""
    if not target.segments:
        end_offset, _ = snapshot_id(target.files[0])
        return end_offset or -1, "a snapshot holds what was, and nothing else"
    if target.high_watermark is not None:
        return target.high_watermark, "the high watermark of the live quorum"
    if target.segments and summary.voters.ids == (known.node_id,):
        return summary.end_offset, f"node {known.node_id} is the only voter: its log decides"
    ends = [snapshot.end_offset for snapshot in known.snapshots if snapshot.end_offset]
    if ends:
        return max(ends), "a snapshot holds nothing else; of what is behind, one log cannot tell"
    snapshot = "its snapshot holds no metadata" if known.snapshots else "there is no snapshot"
    return -1, f"one log alone cannot tell, and {snapshot}"


def notes(summary: Summary) -> list[str]:
    """Explains what people wonder about."""
    found = []
    idle = summary.types[type_name(NoOpRecord)]
    if summary.records and idle > _FLOOD_SHARE * summary.records:
        each = f", here one in {summary.seconds / idle:.1f} s" if summary.seconds else ""
        found.append(
            f"{idle} of {summary.records} records are NoOpRecords: an active controller that has"
            " nothing to write writes one in every metadata.max.idle.interval.ms (500 by default)"
            f"{each}, so that brokers see that they are up to date; nothing is wrong"
        )
    return found
