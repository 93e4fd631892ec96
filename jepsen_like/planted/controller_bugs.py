"""Planted bugs of the controller: whom it takes into an ISR, elects, fences and lets run.

The names in brackets are those of the museum: Apache Kafka had each of these bugs.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import UUID

from controller import controller
from controller.accumulator import Accumulator
from controller.controller import Controller
from controller.decisions import brokers, columns, config_changes, failover
from controller.metadata import (
    alter_partition,
    election,
    partition_records,
    reassignment,
    topics_draft,
)
from controller.metadata.changes import Change
from controller.metadata.image import BrokerImage, MetadataImage
from controller.metadata.partitions import PartitionState
from controller.metadata.reassignment import Assignment
from jepsen_like.planted.planting import plant_in
from wire.errors import ErrorCode
from wire.message import replace as replace_message
from wire.messages.partitions import BrokerState, IsrPartition
from wire.messages.registration import BrokerHeartbeatRequest

_changed = partition_records.changed
_completed = reassignment.completed
_refusal = alter_partition.refusal
_block_of = columns.block_of
_decide_configs = config_changes.decide_incremental_alter_configs
_decide_heartbeat = brokers.decide_heartbeat
_leave_isrs = failover.leave_isrs


@plant_in("controller", alter_partition, "has_ineligible_member")
def takes_in_the_fenced(image: MetadataImage, members: tuple[BrokerState, ...]) -> bool:
    """Breaks: who is fenced or shutting down does not join an ISR (D6, KIP-841)."""
    known = image.brokers
    return any(
        member.broker_id not in known
        or member.broker_epoch not in (-1, known[member.broker_id].epoch)
        for member in members
    )


@plant_in("controller", alter_partition, "has_ineligible_member")
def takes_in_other_lives(image: MetadataImage, members: tuple[BrokerState, ...]) -> bool:
    """Breaks: who joins an ISR is what the leader saw fetch (D7, KIP-903)."""
    return any(not image.is_active(member.broker_id) for member in members)


# What has changed since is somebody who left the ISR. If they may join it again, the leader still
# counts on them: no record is lost.


@plant_in("controller", alter_partition, "refusal", seeds_max=80, found_at=30)
def takes_alterations_one_epoch_old(
    image: MetadataImage, state: PartitionState, asked: IsrPartition, *, broker_id: int
) -> ErrorCode:
    """Breaks: who asks for an ISR knows the present one: its partition epoch (KIP-497)."""
    if asked.partition_epoch == state.partition_epoch - 1:
        asked = replace_message(asked, partition_epoch=state.partition_epoch)
    return _refusal(image, state, asked, broker_id=broker_id)


@plant_in("controller", failover, "leave_isrs", seeds_max=150, found_at=53)
def trusts_every_stop(
    *args: Any, lost: bool = False, one_by_one_max: int | None = None
) -> tuple[Change, ...]:
    """Breaks: who stopped uncleanly may have lost records, and is not eligible (R10, KIP-966)."""
    return _leave_isrs(*args, lost=False, one_by_one_max=one_by_one_max)


@plant_in("controller", brokers, "decide_heartbeat")
def chases_the_end_of_the_log(image: MetadataImage, request: Any, *rest: Any) -> Any:
    """Breaks: a broker has caught up when it has applied its registration (R11, KAFKA-13959)."""
    if request.current_metadata_offset < image.at.offset - 1:
        request = replace_message(request, want_fence=True)
    return _decide_heartbeat(image, request, *rest)


@plant_in("controller", brokers, "present_life")
def obeys_heartbeats_of_earlier_lives(
    image: MetadataImage, request: BrokerHeartbeatRequest
) -> BrokerImage | None:
    """Breaks: a heartbeat acts for the present life of its broker (KIP-631)."""
    return image.brokers.get(request.broker_id)


@plant_in("controller", controller, "present_life")
def hears_earlier_lives(
    image: MetadataImage, request: BrokerHeartbeatRequest
) -> BrokerImage | None:
    """Breaks: a heartbeat prolongs the session of the present life of its broker (KIP-631)."""
    return image.brokers.get(request.broker_id)


@plant_in("controller", election, "elect_leader", seeds_max=10, found_at=0)
def elects_whoever_is_first(state: PartitionState, *args: Any, **known: Any) -> Any:
    """Breaks: who leads is in the ISR, and alive."""
    return election.Elected(state.replicas[0])


@plant_in("controller", election, "completed")
def ends_moves_when_the_added_are_in_sync(
    assignment: Assignment, isr: Iterable[int]
) -> Assignment | None:
    """Breaks: a reassignment ends when all that stay are in sync (KIP-455)."""
    is_done = assignment.is_moving and set(assignment.adding) <= set(isr)
    return _completed(assignment, assignment.staying) if is_done else None


@plant_in("controller", MetadataImage, "is_acceptable", seeds_max=80, found_at=7)
def elects_who_is_shutting_down(self: MetadataImage, broker_id: int, directory: UUID) -> bool:
    """Breaks: who is shutting down is not elected (KIP-841)."""
    broker = self.brokers.get(broker_id)
    return broker is not None and not broker.fenced and broker.has_online(directory)


@plant_in("controller", topics_draft, "changed", seeds_max=10, found_at=0)
def keeps_the_leader_epoch(before: PartitionState, record: Any) -> PartitionState:
    """Breaks: every election raises the leader epoch."""
    return replace(_changed(before, record), leader_epoch=before.leader_epoch)


@plant_in("controller", election, "in_replica_order", seeds_max=80, found_at=21)
def keeps_in_sync_who_has_left(assignment: Any, members: Iterable[int]) -> tuple[int, ...]:
    """Breaks: who is no replica any more is not in sync."""
    return tuple(members)


@plant_in("controller", brokers, "epoch_of_process", seeds_max=10, found_at=1)
def registers_under_the_old_epoch(
    before: BrokerImage | None, incarnation_id: UUID, next_offset: int
) -> int:
    """Breaks: every process of a broker has an epoch of its own (KIP-380)."""
    return next_offset if before is None else before.epoch


@plant_in("controller", Controller, "image", seeds_max=5, found_at=0)
def shows_what_is_not_committed(self: Controller) -> MetadataImage:
    """Breaks: what is not committed is not shown."""
    return self.head.stable


@plant_in(
    "controller",
    config_changes,
    "decide_incremental_alter_configs",
    seeds_max=60,
    found_at=0,
)
def answers_without_doing(*args: Any) -> Any:
    """Breaks: what is answered is done."""
    return replace(_decide_configs(*args), changes=())


@plant_in("controller", Accumulator, "end_offset", seeds_max=3, found_at=0)
def decides_at_the_end_of_the_log(self: Accumulator) -> int:
    """Breaks: a decision has the offsets behind those of the other decisions of its turn."""
    return self._log.end_offset


@plant_in("controller", columns, "block_of", seeds_max=80, found_at=43)
def forgets_the_last_partition(decided: columns.Decided, *, keep: columns.Hits) -> Any:
    """Breaks: a decision over columns is made for every partition."""
    keep = keep.copy()
    keep[-1:] = False
    return _block_of(decided, keep=keep)
