"""What a metadata log is, and what it holds: counts, epochs, voters and problems.

Its identity is what small files, names and its two ends tell without reading all of it. Its summary
needs the whole log. Every count is bounded: a log of any size takes the same memory.

Source: KIP-853 (voters in snapshots), KIP-595 (quorum-state), Kafka's LeaderEpochFileCache.
"""

import json
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from quorum.core.storage import StorageError
from quorum.log.files.checkpoints import (
    EPOCHS,
    META_PROPERTIES,
    QUORUM_STATE,
    parse_election,
    parse_epochs,
    parse_meta_properties,
)
from quorum.node.bootstrap import BOOTSTRAP
from quorumlab.inspection.batches import Batch, Complaints, Damage, last_batch, read_batches
from quorumlab.inspection.entries import Entry, Unknown, entries
from quorumlab.inspection.stream import target_batches
from quorumlab.inspection.target import Target, is_torn, snapshot_id
from wire.control_records import KRaftVersion, LeaderChange, Voters
from wire.metadata_records import NoOpRecord, RegisterControllerRecord
from wire.partition_block import counted
from wire.primitives import uuid_text
from wire.record_json import type_name

__all__ = [
    "Identity",
    "Summary",
    "Voter",
    "VoterSet",
    "committed",
    "identify",
    "notes",
    "summarize",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    id: int
    directory_id: str | None = None  # None: static voters have none
    endpoints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterSet:
    voters: tuple[Voter, ...] = ()
    source: str = "not told"
    is_dynamic: bool = False

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(voter.id for voter in self.voters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    end_offset: int
    epoch: int
    bytes: int


@dataclass(slots=True, kw_only=True)
class Identity:
    """An unknown value is None or empty. Offsets are inclusive at the start, ends exclusive."""

    path: str
    what: str
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None
    formatted_by: str | None = None
    epoch: int | None = None  # of the quorum, as this node last knew
    leader: int | None = None
    voted: int | None = None
    segments: int = 0
    bytes: int = 0
    snapshots: tuple[Snapshot, ...] = ()
    start_offset: int | None = None
    end_offset: int | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    last_epoch: int | None = None
    epoch_starts: tuple[tuple[int, int], ...] = ()  # epoch, start offset
    voters: VoterSet = field(default_factory=VoterSet)
    problems: list[str] = field(default_factory=list)


def identify(target: Target) -> Identity:
    found = Identity(
        path=str(target.log_directory or target.path),
        what=_what(target),
        cluster_id=target.cluster_id,
        segments=len(target.segments),
        snapshots=tuple(
            Snapshot(end_offset=end, epoch=epoch, bytes=_size(path))
            for path in target.snapshots
            for end, epoch in (snapshot_id(path),)
        ),
    )
    found.bytes = sum(map(_size, target.files))
    if target.node_directory is not None:
        _try(found, target.node_directory / META_PROPERTIES, _take_meta_properties)
        if (target.node_directory / BOOTSTRAP).exists():
            found.formatted_by = BOOTSTRAP
    if target.log_directory is not None:
        _try(found, target.log_directory / QUORUM_STATE, _take_election)
        _try(found, target.log_directory / EPOCHS, _take_epochs)
    _take_ends(found, target)
    _take_snapshots_voters(found, target)
    return found


def _what(target: Target) -> str:
    if target.high_watermark is not None:
        return "a live quorum"
    if target.log_directory is None:
        return "one segment of a metadata log" if target.segments else _snapshot(target.path)
    if not target.segments:
        return f"a metadata log without records: {_snapshot(target.snapshots[-1])}"
    return "the metadata log of a node"


def _snapshot(path: Path) -> str:
    if path.name == BOOTSTRAP:
        return "bootstrap records: what the first active controller writes into an empty log"
    end_offset, _ = snapshot_id(path)
    if end_offset == 0:
        return "bootstrap snapshot: only control records, no metadata; what follows is in the log"
    return f"a snapshot of everything before offset {end_offset}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # a running node has just removed it
        return 0


def _try(found: Identity, path: Path, take: Callable[[Identity, bytes, str], None]) -> None:
    try:
        take(found, path.read_bytes(), str(path))
    except FileNotFoundError:
        pass  # not every directory has every file
    except OSError as error:
        found.problems.append(f"{path} cannot be read: {error.strerror}")
    except StorageError as error:
        found.problems.append(str(error))


def _take_meta_properties(found: Identity, content: bytes, path: str) -> None:
    meta = parse_meta_properties(content, path)
    found.cluster_id, found.node_id = meta.cluster_id, meta.node_id
    found.directory_id = None if meta.directory_id is None else uuid_text(meta.directory_id)


def _take_election(found: Identity, content: bytes, path: str) -> None:
    election = parse_election(content, path)
    found.epoch, found.leader = election.epoch, election.leader_id
    found.voted = None if election.voted is None else election.voted.id
    named = json.loads(content).get("currentVoters")
    ids = [each.get("voterId") for each in named or () if isinstance(each, dict)]
    static = tuple(Voter(id=voter) for voter in ids if type(voter) is int)
    if static:
        found.voters = VoterSet(voters=static, source=f"{QUORUM_STATE} (static voters)")


def _take_epochs(found: Identity, content: bytes, path: str) -> None:
    found.epoch_starts = tuple((epoch, start) for epoch, start in parse_epochs(content, path))


def _take_ends(found: Identity, target: Target) -> None:
    if not target.segments:
        return
    try:
        last = next(filter(None, map(last_batch, reversed(target.segments))), None)
        batches = (each for path in target.segments for each in read_batches(path))
        first = next(batches, None)
    except OSError as error:
        found.problems.append(f"{error.filename} cannot be read: {error.strerror}")
        return
    if isinstance(first, Batch):
        found.start_offset = first.header.base_offset
        found.first_ms = first.header.base_timestamp_ms
    if last is not None:
        found.end_offset = last.header.next_offset
        found.last_ms, found.last_epoch = last.header.max_timestamp_ms, last.header.leader_epoch


def _take_snapshots_voters(found: Identity, target: Target) -> None:
    """Takes the voters in force at the end of the newest snapshot."""
    for path in target.snapshots[-1:]:
        first = next(read_batches(path), None)
        if isinstance(first, Batch) and first.header.is_control:
            for entry in entries(first):
                if isinstance(entry.content, Voters):
                    found.voters = voters_of(entry.content, path.name)


def voters_of(record: Voters, where: str) -> VoterSet:
    return VoterSet(
        voters=tuple(
            Voter(
                id=voter.voter_id,
                directory_id=uuid_text(voter.voter_directory_id),
                endpoints=tuple(f"{e.name}://{e.host}:{e.port}" for e in voter.endpoints),
            )
            for voter in record.voters
        ),
        source=f"KRaftVoters in {where} (dynamic voters)",
        is_dynamic=True,
    )


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
