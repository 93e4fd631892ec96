"""The identity of a log: what small files, names and its two ends tell without reading all of it.

Source: KIP-853 (voters in snapshots), KIP-595 (quorum-state), Kafka's LeaderEpochFileCache.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
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
from quorumlab.inspection.batches import Batch, last_batch, read_batches
from quorumlab.inspection.entries import entries
from quorumlab.inspection.target import Target, snapshot_id
from wire.control_records import Voters
from wire.primitives import uuid_text

__all__ = ["Identity", "Voter", "VoterSet", "identify", "voters_of"]


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
