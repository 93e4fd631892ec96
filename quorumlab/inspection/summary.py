"""What a metadata log is: identity and ends at once, counts and problems once all was read."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from quorum.bootstrap import BOOTSTRAP
from quorum.checkpoints import META_PROPERTIES, QUORUM_STATE, parse_election, parse_meta_properties
from quorum.storage import StorageError
from quorumlab.inspection.batches import Batch, Damage, read_batches
from quorumlab.inspection.entries import Entry, Unknown, entries
from quorumlab.inspection.stream import log_batches
from quorumlab.inspection.target import Target, snapshot_id
from wire.control_records import KRaftVersion, LeaderChange, Voters
from wire.metadata_records import PartitionChangeRecord, PartitionRecord, UnknownRecord
from wire.partition_block import decode
from wire.partition_columns import NewPartitions, PartitionChanges
from wire.primitives import uuid_text
from wire.record_json import type_name
from wire.varint import Malformed

__all__ = ["Summary", "identity", "summarize"]


def identity(target: Target) -> dict[str, Any]:
    """What small files and names say, without reading the log."""
    found: dict[str, Any] = {"path": str(target.log_directory or target.path)}
    for name, read in (("node", _node), ("election", _election)):
        try:
            found |= read(target)
        except (OSError, StorageError) as error:
            found[f"{name}_problem"] = str(error)
    found["segments"] = len(target.segments)
    found["bytes"] = sum(path.stat().st_size for path in target.files)
    found["snapshots"] = [
        {"end_offset": end, "epoch": epoch, "bytes": path.stat().st_size}
        for path in target.snapshots
        for end, epoch in (snapshot_id(path),)
    ]
    return found


def _node(target: Target) -> dict[str, Any]:
    if target.node_directory is None:
        return {}
    path = target.node_directory / META_PROPERTIES
    meta = parse_meta_properties(path.read_bytes(), str(path))
    return {
        "cluster_id": meta.cluster_id,
        "node_id": meta.node_id,
        "directory_id": None if meta.directory_id is None else uuid_text(meta.directory_id),
        "formatted_by": BOOTSTRAP if (target.node_directory / BOOTSTRAP).exists() else None,
    }


def _election(target: Target) -> dict[str, Any]:
    path = None if target.log_directory is None else target.log_directory / QUORUM_STATE
    if path is None or not path.exists():
        return {}
    election = parse_election(path.read_bytes(), str(path))
    voted = None if election.voted is None else election.voted.id
    return {"epoch": election.epoch, "leader": election.leader_id, "voted": voted}


@dataclass(slots=True, kw_only=True)
class Summary:
    """Of all records. Offsets are inclusive at the start and exclusive at the end."""

    problems: list[str] = field(default_factory=list)
    start_offset: int = -1
    end_offset: int = -1
    first_ms: int = -1
    last_ms: int = -1
    batches: int = 0
    records: int = 0
    bytes: int = 0
    types: Counter[str] = field(default_factory=Counter)
    epochs: list[dict[str, int]] = field(default_factory=list)
    voters: list[int] = field(default_factory=list)
    voters_from: str = "not told by this log"
    kraft_version: int = 0

    @property
    def records_per_second(self) -> float:
        span_ms = self.last_ms - self.first_ms
        return 0.0 if span_ms <= 0 else round(1000 * self.records / span_ms, 3)


def summarize(target: Target) -> Summary:
    """Reads all of it."""
    summary = Summary()
    for found in _batches(target):
        if isinstance(found, Damage):
            summary.problems.append(str(found))
            continue
        if found.header.is_control or not summary.epochs:
            _note_epoch(summary, found)
        _count(summary, found)
        summary.records += found.header.record_count
        if not _count_many(summary, found):
            _count_each(summary, found)
    return summary


def _count_many(summary: Summary, batch: Batch) -> bool:
    """Count without making a value of every record, if all of them are known."""
    if batch.header.is_control:
        return False
    try:
        changes = list(decode(batch.content))
    except (UnknownRecord, Malformed):
        return False
    for change in changes:
        match change:
            case NewPartitions():
                summary.types[type_name(PartitionRecord)] += len(change)
            case PartitionChanges():
                summary.types[type_name(PartitionChangeRecord)] += len(change)
            case _:
                summary.types[type_name(type(change))] += 1
    return True


def _count_each(summary: Summary, batch: Batch) -> None:
    for entry in entries(batch):
        summary.types[entry.type] += 1
        if isinstance(entry.content, Unknown):
            reason = entry.content.reason
            summary.problems.append(f"{batch.path} at offset {entry.offset}: {reason}")


def _batches(target: Target) -> Iterator[Batch | Damage]:
    if target.segments:
        yield from log_batches(target.segments)
    elif target.snapshots:
        yield from read_batches(target.snapshots[-1])


def _count(summary: Summary, batch: Batch) -> None:
    header = batch.header
    if summary.start_offset < 0:
        summary.start_offset = header.base_offset
        summary.first_ms = header.base_timestamp_ms
    summary.end_offset = header.next_offset
    summary.last_ms = max(summary.last_ms, header.max_timestamp_ms)
    summary.batches += 1
    summary.bytes += header.size_bytes
    summary.epochs[-1]["end_offset"] = header.next_offset


def _note_epoch(summary: Summary, batch: Batch) -> None:
    """Who leads, since when, and who votes: from control records."""
    header = batch.header
    if not summary.epochs or summary.epochs[-1]["epoch"] != header.leader_epoch:
        started = {
            "epoch": header.leader_epoch,
            "leader": -1,
            "start_offset": header.base_offset,
            "end_offset": header.next_offset,
            "since_ms": header.base_timestamp_ms,
        }
        summary.epochs.append(started)
    for entry in entries(batch):
        _note_control(summary, entry)


def _note_control(summary: Summary, entry: Entry) -> None:
    match entry.content:
        case LeaderChange(leader_id=leader_id, voters=voters):
            summary.epochs[-1]["leader"] = leader_id
            if not summary.kraft_version:
                summary.voters = [voter.voter_id for voter in voters]
                summary.voters_from = f"LeaderChange at offset {entry.offset} (static voters)"
        case KRaftVersion(kraft_version=version):
            summary.kraft_version = version
        case Voters(voters=voters):
            summary.voters = [voter.voter_id for voter in voters]
            summary.voters_from = f"KRaftVoters at offset {entry.offset} (dynamic voters)"
        case _:
            pass
