"""Is a log what a quorum and its controllers would have written?

docs/inspect.md lists the rules: those of the log and its snapshots (L, S), that every record can
follow from what came before (M-REPLAY), and what must hold of partitions and brokers after every
batch (the other M). Rows are sifted in columns; only those that look odd are judged one by one,
with the reason.

Source: the invariants of KIP-497, KIP-595, KIP-630, KIP-841, KIP-903 and KIP-966 that a log alone
can show; Kafka's PartitionChangeBuilder.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import numpy as np
import numpy.typing as npt

from controller.metadata.apply import apply_with_delta
from controller.metadata.changes import Change, CommittedBatch, decode_changes
from controller.metadata.configs import min_insync_replicas
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, PartitionColumns, PartitionState, Rows
from controller.metadata.topics import NO_ROW
from quorum.core.storage import StorageError
from quorum.log.files.checkpoints import EPOCHS, parse_epochs
from quorumlab.inspection.batches import Batch, Damage
from quorumlab.inspection.states import load_snapshot
from quorumlab.inspection.stream import target_batches
from quorumlab.inspection.target import Target, is_torn, snapshot_id
from quorumlab.inspection.tree import first_difference
from wire import metadata_records as records
from wire.foreign_records import ForeignRecord
from wire.partition_columns import NewPartitions, PartitionChanges, uuid_column
from wire.record_schema import UnknownRecord

__all__ = ["Verified", "verify"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """`offset` is the record where it shows, -1 if it is none's."""

    rule: str
    detail: str
    offset: int = -1

    def __str__(self) -> str:
        place = "" if self.offset < 0 else f" at offset {self.offset}"
        return f"{self.rule}{place}: {self.detail}"


@dataclass(slots=True)
class Verified:
    batches: int = 0
    records: int = 0
    snapshots_compared: int = 0
    unknown_from: int = -1  # a record that this version does not know: the state ends there
    torn_tail: str = ""  # what is no violation: a write that a crash, or our looking, cut off


def verify(target: Target, seen: Verified) -> Iterator[Violation]:
    """Every violation, in the order in which a reader of the log meets them."""
    replay = _Replay(target, seen)
    for found in target_batches(target) if target.segments else ():
        if not isinstance(found, Damage):
            yield from replay.take(found)
        elif found.path == target.segments[-1] and is_torn(found):
            seen.torn_tail = str(found)
        else:
            yield Violation(rule=found.rule, detail=str(found), offset=found.offset)
    yield from replay.compared()
    for path in target.snapshots:
        for problem in load_snapshot(path).problems:
            yield Violation(rule="S-WHOLE", detail=problem)
    yield from _cache(target, replay.epochs)


class _Replay:
    """The state behind what was read, for as long as it can be told."""

    def __init__(self, target: Target, seen: Verified) -> None:
        self._target = target
        self._seen = seen
        self._waiting = {snapshot_id(p): p for p in target.snapshots if snapshot_id(p)[0]}
        self._ends = {snapshot_id(path)[0]: path for path in target.snapshots}
        self._image: MetadataImage | None = None
        self._next_offset = -1
        self.epochs: list[tuple[int, int]] = []  # with the offset where each begins

    def take(self, batch: Batch) -> Iterator[Violation]:
        header = batch.header
        if not self._seen.batches:
            yield from self._start(header.base_offset)
        elif header.base_offset != self._next_offset:
            self._image = None  # what was lost may have changed anything
        self._next_offset = header.next_offset
        if self._image is None and header.base_offset in self._ends:
            path = self._ends[header.base_offset]
            self._image = load_snapshot(path).image
            self._waiting.pop(snapshot_id(path), None)  # it says what it says
        yield from self.compared()
        if not header.is_control:
            yield from self._apply(batch)
        if not self.epochs or self.epochs[-1][0] < header.leader_epoch:
            self.epochs.append((header.leader_epoch, header.base_offset))
        self._seen.batches += 1
        self._seen.records += header.record_count

    def _start(self, offset: int) -> Iterator[Violation]:
        """Starts from nothing, or, in a log that was cut, from the first snapshot at or in it."""
        if offset == 0:
            self._image = MetadataImage()
        elif max(self._ends, default=0) < offset and self._target.log_directory is not None:
            detail = f"the log begins at {offset}, and no snapshot goes so far"
            yield Violation(rule="L-START", detail=detail, offset=offset)

    def _apply(self, batch: Batch) -> Iterator[Violation]:
        if self._image is None:
            return
        offset = batch.header.base_offset
        try:
            for committed in decode_changes(batch.content):
                _refuse_foreign(committed.changes)
                before = self._image
                self._image, _ = apply_with_delta(before, committed)
                for rule, detail in broken_rules(before, self._image, committed):
                    yield Violation(rule=rule, detail=detail, offset=offset)
        except UnknownRecord:
            self._seen.unknown_from = offset
            self._image = None
        except ValueError as error:
            self._image = None
            detail = f"{error}; the states behind it, up to a snapshot, are not looked at"
            yield Violation(rule="M-REPLAY", detail=detail, offset=offset)

    def compared(self) -> Iterator[Violation]:
        """Compare the snapshots that end where the state is."""
        image = self._image
        if image is None:
            return
        for key in [key for key in self._waiting if key[0] <= image.at.offset]:
            path = self._waiting.pop(key)
            if key[0] == image.at.offset and image.transaction is None:
                self._seen.snapshots_compared += 1
                yield from _unlike(path, image)


def _refuse_foreign(changes: Iterable[Change]) -> None:
    """Raises UnknownRecord for a record of which nothing is known."""
    for change in changes:
        if isinstance(change, ForeignRecord) and change.known is None:
            raise UnknownRecord(change.reason)


def _unlike(path: Path, image: MetadataImage) -> Iterator[Violation]:
    found = first_difference(image, load_snapshot(path).image)
    if found is not None:
        end, _ = snapshot_id(path)
        detail = f"{path.name} is not what the log says: {found.path} is {found.after}, by the log"
        yield Violation(rule="S-IMAGE", detail=f"{detail} {found.before}", offset=end - 1)


def _cache(target: Target, epochs: list[tuple[int, int]]) -> Iterator[Violation]:
    if target.log_directory is None or not (target.log_directory / EPOCHS).exists():
        return
    path = target.log_directory / EPOCHS
    try:
        told = [tuple(entry) for entry in parse_epochs(path.read_bytes(), str(path))]
    except StorageError as error:
        yield Violation(rule="L-CACHE", detail=str(error))
        return
    # A running node saves it when it rolls, so that the newest epochs may be missing.
    missing = [entry for entry in told if entry not in epochs and epochs and entry >= epochs[0]]
    if missing:
        yield Violation(rule="L-CACHE", detail=f"{path} has {missing}, the batches {epochs}")


# --- what must hold after every batch -------------------------------------------------------


_Broken = tuple[str, str]  # a rule, and how it is broken


def broken_rules(
    before: MetadataImage, after: MetadataImage, batch: CommittedBatch
) -> Iterator[_Broken]:
    yield from _broker_epochs(before, batch.changes)
    rows, counts = _named_rows(after, batch.changes)
    if not len(rows):
        return
    is_exact = not any(isinstance(c, records.AbortTransactionRecord) for c in batch.changes)
    for place in _odd(before, after, rows, counts).tolist():
        found = after.partitions.place(int(rows[place]))
        assert found is not None, rows[place]
        topic_id, index = found
        was, state = before.partition(topic_id, index), after.partitions.state(int(rows[place]))
        topic = after.topic_by_id(topic_id)
        name = f"{topic_id if topic is None else topic.name}-{index}"
        changes = int(counts[place]) if is_exact else None
        for rule, detail in _judged(after, was, state, topic_id, changes):
            yield rule, f"{name}: {detail}"


def _broker_epochs(before: MetadataImage, changes: Sequence[Change]) -> Iterator[_Broken]:
    for change in changes:
        if isinstance(change, records.RegisterBrokerRecord):
            known = before.brokers.get(change.broker_id)
            if known is None or known.incarnation_id == change.incarnation_id:
                continue
            if change.broker_epoch <= known.epoch:
                text = f"broker {change.broker_id} registers with epoch {change.broker_epoch}"
                yield "M-BE", f"{text} after {known.epoch}"


# --- sifting --------------------------------------------------------------------------------


def _named_rows(
    image: MetadataImage, changes: Sequence[Change]
) -> tuple[Rows, npt.NDArray[np.int64]]:
    """The rows that the changes name, each once, and how many of the records name it."""
    found = [np.empty(0, np.int32)]
    alone: list[tuple[UUID, int]] = []
    for change in changes:
        match change:
            case PartitionChanges() | NewPartitions():
                found.append(image.topics.rows_of(change.topic_ids, change.partition_ids))
            case records.PartitionRecord() | records.PartitionChangeRecord():
                alone.append((change.topic_id, change.partition_id))
            case _:
                pass
    if alone:
        ids = uuid_column(topic_id for topic_id, _ in alone)
        indexes = np.array([index for _, index in alone], np.int32)
        found.append(image.topics.rows_of(ids, indexes))
    rows, counts = np.unique(np.concatenate(found), return_counts=True)
    is_there = rows != NO_ROW  # a topic may be gone again
    return rows[is_there].astype(np.int32), counts[is_there].astype(np.int64)


def _odd(
    before: MetadataImage, after: MetadataImage, rows: Rows, counts: npt.NDArray[np.int64]
) -> npt.NDArray[np.intp]:
    """Returns the places in `rows` that must be judged one by one."""
    now = after.partitions.columns(rows)
    odd = ~now.is_columnar | _has_odd_members(after, now)
    old_rows = before.topics.rows_of(now.topic_id, now.partition)
    known = np.flatnonzero(old_rows != NO_ROW)
    was = before.partitions.columns(old_rows[known])
    epochs = now.partition_epoch[known] - was.partition_epoch
    leads = now.leader_epoch[known] - was.leader_epoch
    odd[known] |= (
        ~was.is_columnar
        | (epochs != counts[known])
        | (leads < 0)
        | ((now.leader[known] != was.leader) & (leads <= 0))
    )
    return np.flatnonzero(odd)


def _has_odd_members(image: MetadataImage, now: PartitionColumns) -> npt.NDArray[np.bool_]:
    """Is the leader not in the ISR, is that empty, or is one of it not active?"""
    active = np.array([each.id for each in image.brokers.values() if each.is_active], np.int32)
    leads = now.leader == NO_LEADER
    odd: npt.NDArray[np.bool_] = now.isr == 0
    for slot, brokers in enumerate(now.replicas):
        is_member = (now.isr >> np.uint8(slot) & np.uint8(1)).astype(np.bool_)
        leads |= is_member & (brokers == now.leader)
        odd |= is_member & ~np.isin(brokers, active)
    odd |= ~leads
    return odd


# --- judging --------------------------------------------------------------------------------


def _judged(
    image: MetadataImage,
    was: PartitionState | None,
    state: PartitionState,
    topic_id: UUID,
    changes: int | None,
) -> Iterator[_Broken]:
    if state.leader != NO_LEADER and state.leader not in state.isr:
        yield "M-LI", f"leader {state.leader} is not in the ISR {list(state.isr)}"
    yield from _subsets(image, state, topic_id)
    yield from _fenced(image, was, state)
    if was is not None and changes is not None:
        yield from _epochs(was, state, changes)


def _subsets(image: MetadataImage, state: PartitionState, topic_id: UUID) -> Iterator[_Broken]:
    isr, elr, replicas = set(state.isr), set(state.eligible_leader_replicas), set(state.replicas)
    for name, members in (("ISR", isr), ("ELR", elr)):
        if not members <= replicas:
            strange = sorted(members - replicas)
            yield "M-SUB", f"{strange} in the {name}, not among the replicas {list(state.replicas)}"
    if isr & elr:
        yield "M-SUB", f"{sorted(isr & elr)} in the ISR and in the ELR"
    least = min(_min_isr(image, topic_id), len(replicas))
    if elr and len(isr) >= least:
        yield "M-SUB", f"ELR {sorted(elr)} beside the ISR {list(state.isr)}, of which {least} do"
    if not (isr or elr or state.last_known_elr):
        yield "M-SUB", "an empty ISR, and nobody is left who could lead"


def _min_isr(image: MetadataImage, topic_id: UUID) -> int:
    topic = image.topic_by_id(topic_id)
    try:
        return min_insync_replicas(image, "" if topic is None else topic.name)
    except ValueError:  # the log says anything; what it means then nobody knows
        return 1 << 31


def _fenced(
    image: MetadataImage, was: PartitionState | None, state: PartitionState
) -> Iterator[_Broken]:
    joined = [member for member in state.isr if was is None or member not in was.isr]
    for member in joined:
        if not image.is_active(member):
            yield "M-FEN", f"broker {member}, which is {_why(image, member)}, came into the ISR"
    is_new = was is None or was.leader != state.leader
    if is_new and state.leader != NO_LEADER and not image.is_active(state.leader):
        yield "M-FEN", f"broker {state.leader}, which is {_why(image, state.leader)}, was elected"


def _why(image: MetadataImage, broker_id: int) -> str:
    broker = image.brokers.get(broker_id)
    if broker is None:
        return "not registered"
    return "fenced" if broker.fenced else "shutting down"


def _epochs(was: PartitionState, state: PartitionState, changes: int) -> Iterator[_Broken]:
    if state.partition_epoch != was.partition_epoch + changes:
        text = f"partition epoch {state.partition_epoch} after {was.partition_epoch}"
        yield "M-PE", f"{text} and {changes} record{'s' * (changes != 1)}"
    if state.leader_epoch < was.leader_epoch:
        yield "M-PE", f"leader epoch {state.leader_epoch} after {was.leader_epoch}"
    elif state.leader != was.leader and state.leader_epoch == was.leader_epoch:
        yield "M-PE", f"leader {state.leader} after {was.leader}, both in epoch {was.leader_epoch}"
