"""What single records make of a partition's state.

Source: KIP-631; Kafka's PartitionRegistration.
"""

from dataclasses import fields
from uuid import UUID

from controller.metadata.partitions import UNCHANGED, PartitionState
from wire.metadata_records import RECOVERY_UNCHANGED, PartitionChangeRecord, PartitionRecord
from wire.primitives import DIRECTORY_MIGRATING

__all__ = ["changed", "record_of", "state_of"]


_SAME = tuple(field.name for field in fields(PartitionState))  # as the record calls them
_ELIGIBLE = ("eligible_leader_replicas", "last_known_elr")  # None in the record, if there are none


def state_of(record: PartitionRecord) -> PartitionState:
    values = {name: getattr(record, name) for name in _SAME}
    return PartitionState(**values | {name: values[name] or () for name in _ELIGIBLE})


def record_of(topic_id: UUID, index: int, state: PartitionState) -> PartitionRecord:
    """The whole state as one record, in its newest version."""
    values = {name: getattr(state, name) for name in _SAME}
    values |= {name: values[name] or None for name in _ELIGIBLE}
    return PartitionRecord(topic_id=topic_id, partition_id=index, **values)


def changed(before: PartitionState, record: PartitionChangeRecord) -> PartitionState:
    """The state after a change: every one raises the partition epoch, an election also the
    leader epoch, even if the leader stays the same."""
    replicas = before.replicas if record.replicas is None else record.replicas
    elected = record.leader != UNCHANGED
    keeps_recovery = record.leader_recovery_state == RECOVERY_UNCHANGED
    return PartitionState(
        replicas=replicas,
        isr=before.isr if record.isr is None else record.isr,
        leader=record.leader if elected else before.leader,
        leader_epoch=before.leader_epoch + elected,
        partition_epoch=before.partition_epoch + 1,
        leader_recovery_state=(
            before.leader_recovery_state if keeps_recovery else record.leader_recovery_state
        ),
        adding_replicas=_or(record.adding_replicas, before.adding_replicas),
        removing_replicas=_or(record.removing_replicas, before.removing_replicas),
        directories=_directories(before, record, replicas),
        eligible_leader_replicas=_or(
            record.eligible_leader_replicas, before.eligible_leader_replicas
        ),
        last_known_elr=_or(record.last_known_elr, before.last_known_elr),
    )


def _or(value: tuple[int, ...] | None, otherwise: tuple[int, ...]) -> tuple[int, ...]:
    return otherwise if value is None else value


def _directories(
    before: PartitionState, record: PartitionChangeRecord, replicas: tuple[int, ...]
) -> tuple[UUID, ...]:
    if record.directories:
        return record.directories
    if record.replicas is None:
        return before.directories
    known = dict(zip(before.replicas, before.directories, strict=True))
    return tuple(known.get(replica, DIRECTORY_MIGRATING) for replica in replicas)
