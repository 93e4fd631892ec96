"""Is a log what a quorum and its controllers would have written?

    L-CRC, L-OFFSET, L-EPOCH   checksums hold, offsets have no gaps, epochs do not go back
    L-START                    a log that does not begin at 0 has a snapshot that it goes on from
    L-CACHE                    leader-epoch-checkpoint says what the batches say
    S-WHOLE, S-IMAGE           snapshots are whole, and equal to the log replayed up to them
    M-LI                       a leader is in the ISR, or there is none
    M-SUB                      ISR and ELR are parts of the replicas, and have nobody in common
    M-PE                       a partition epoch rises by one a change, a leader epoch never falls
    M-REPLAY                   every record can follow from what came before

Source: the invariants of KIP-595, KIP-630 and KIP-966 that a log alone can show.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from controller.metadata.apply import UnreplayableRecord, apply_with_delta
from controller.metadata.changes import decode_changes
from controller.metadata.describe import fingerprint
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, PartitionState
from quorum.checkpoints import EPOCHS, parse_epochs
from quorum.storage import StorageError
from quorumlab.inspection.batches import Batch, Damage
from quorumlab.inspection.states import load_snapshot
from quorumlab.inspection.stream import log_batches
from quorumlab.inspection.target import Target, snapshot_id
from wire.metadata_records import UnknownRecord
from wire.varint import Malformed

__all__ = ["Verified", "Violation", "verify"]


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
    """How much was looked at."""

    batches: int = 0
    records: int = 0
    snapshots_compared: int = 0
    unknown_from: int = -1  # a record that this version does not know: the state ends there


def verify(target: Target, seen: Verified) -> Iterator[Violation]:
    """Every violation, in the order in which a reader of the log meets them."""
    waiting = {snapshot_id(path): path for path in target.snapshots if snapshot_id(path)[0]}
    image: MetadataImage | None = MetadataImage()
    epochs: list[tuple[int, int]] = []
    is_first = True
    for found in log_batches(target.segments):
        if isinstance(found, Damage):
            if not found.is_tail:
                yield Violation(rule=_rule_of(found), detail=str(found), offset=found.offset)
            continue
        header = found.header
        if is_first and header.base_offset > 0:
            image, problem = _started(target, header.base_offset)
            if problem is not None:
                yield problem
        is_first = False
        if image is not None:
            yield from _compared(image, waiting, seen)
            image, violations = _replayed(image, found, seen)
            yield from violations
        if not epochs or epochs[-1][0] < header.leader_epoch:
            epochs.append((header.leader_epoch, header.base_offset))
        seen.batches += 1
        seen.records += header.record_count
    if image is not None:
        yield from _compared(image, waiting, seen)
    yield from _whole(target)
    yield from _cache(target, epochs)


def _rule_of(damage: Damage) -> str:
    if "epoch" in damage.problem and "follows" in damage.problem:
        return "L-EPOCH"
    return "L-OFFSET" if "follows" in damage.problem else "L-CRC"


def _started(target: Target, offset: int) -> tuple[MetadataImage | None, Violation | None]:
    """The state at the start of a log that was cut."""
    for path in reversed(target.snapshots):
        if snapshot_id(path)[0] == offset:
            return load_snapshot(path).image, None
    detail = f"the log begins at {offset}, and no snapshot ends there"
    later = [path for path in target.snapshots if snapshot_id(path)[0] >= offset]
    if later:
        return None, None  # its segment is kept whole: the snapshot lies within
    return None, Violation(rule="L-START", detail=detail, offset=offset)


def _replayed(
    image: MetadataImage, batch: Batch, seen: Verified
) -> tuple[MetadataImage | None, list[Violation]]:
    """The state behind the batch, and what it broke; None if it cannot be told any longer."""
    violations: list[Violation] = []
    if batch.header.is_control:
        return image, violations
    try:
        for committed in decode_changes(batch.content):
            before = image
            image, delta = apply_with_delta(before, committed)
            for topic_id, index in delta.partitions_changed(image.partitions):
                state = image.partition(topic_id, index)
                assert state is not None, (topic_id, index)
                topic = image.topic_by_id(topic_id)
                name = f"{topic_id if topic is None else topic.name}-{index}"
                for rule, detail in _broken(before.partition(topic_id, index), state):
                    text = f"{name}: {detail}"
                    offset = committed.base_offset
                    violations.append(Violation(rule=rule, detail=text, offset=offset))
    except UnknownRecord:
        seen.unknown_from = batch.header.base_offset
        return None, violations
    except (UnreplayableRecord, Malformed) as error:
        offset = batch.header.base_offset
        violations.append(Violation(rule="M-REPLAY", detail=str(error), offset=offset))
        return None, violations
    return image, violations


def _broken(before: PartitionState | None, after: PartitionState) -> Iterator[tuple[str, str]]:
    isr, replicas = set(after.isr), set(after.replicas)
    elr = set(after.eligible_leader_replicas)
    if after.leader != NO_LEADER and after.leader not in isr:
        yield "M-LI", f"leader {after.leader} is not in the ISR {after.isr}"
    if not isr <= replicas or not elr <= replicas:
        yield "M-SUB", f"ISR {after.isr} and ELR {sorted(elr)} beside replicas {after.replicas}"
    if isr & elr:
        yield "M-SUB", f"{sorted(isr & elr)} in the ISR and in the ELR"
    if before is not None and after.partition_epoch <= before.partition_epoch:
        yield "M-PE", f"partition epoch {after.partition_epoch} after {before.partition_epoch}"
    if before is not None and after.leader_epoch < before.leader_epoch:
        yield "M-PE", f"leader epoch {after.leader_epoch} after {before.leader_epoch}"


def _compared(
    image: MetadataImage, waiting: dict[tuple[int, int], Path], seen: Verified
) -> Iterator[Violation]:
    """Compare the snapshots that end where the state is."""
    for end, epoch in [each for each in waiting if each[0] <= image.at.offset]:
        path = waiting.pop((end, epoch))
        if end != image.at.offset or image.transaction is not None:
            continue
        seen.snapshots_compared += 1
        if fingerprint(load_snapshot(path).image) != fingerprint(image):
            detail = f"{path.name} is not what the log says up to offset {end}"
            yield Violation(rule="S-IMAGE", detail=detail, offset=end - 1)


def _whole(target: Target) -> Iterator[Violation]:
    for path in target.snapshots:
        for problem in load_snapshot(path).problems:
            yield Violation(rule="S-WHOLE", detail=problem)


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
