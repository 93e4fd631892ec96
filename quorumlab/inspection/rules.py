"""What must hold of partitions and brokers after every batch of the metadata log.

    M-LI      a leader is in the ISR, or there is none
    M-SUB     ISR and ELR are parts of the replicas and have nobody in common; there is no ELR
              beside an ISR as large as min.insync.replicas; an empty ISR leaves some ELR behind
    M-PE      a partition epoch rises by one a record; a leader epoch never falls, and rises
              whenever the leader is another
    M-FEN     nobody who is fenced or shutting down comes into an ISR or is elected
    M-BE      the epoch of a broker rises when another incarnation of it registers

Rows are sifted in columns; only those that look odd are judged one by one, with the reason.

Source: KIP-497, KIP-841, KIP-903, KIP-966; Kafka's PartitionChangeBuilder.
"""

from collections.abc import Iterator, Sequence
from uuid import UUID

import numpy as np
import numpy.typing as npt

from controller.metadata.changes import Change, CommittedBatch
from controller.metadata.configs import min_insync_replicas
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, PartitionColumns, PartitionState, Rows
from controller.metadata.topics import NO_ROW
from wire import metadata_records as records
from wire.partition_columns import NewPartitions, PartitionChanges, uuid_column

__all__ = ["broken_rules"]

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
