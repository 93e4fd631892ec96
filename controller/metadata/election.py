"""Partition changes: who leads, who is in sync, and what is recorded of it.

One way to build a change, whatever caused it: an AlterPartition request, a failed broker, a broker
that came back, an election or a reassignment that somebody asked for. The caller says what it wants
as a `Desired`; `decide_change` completes a reassignment that is done, computes the eligible leader
replicas (KIP-966), elects, and drops what would change nothing. `controller.decisions.columns` has
the same rules over columns, for many partitions of the common shape; a property test holds both
equal.

Source: Kafka's PartitionChangeBuilder; KIP-455, KIP-497, KIP-704 (recovery state), KIP-903,
KIP-966.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol
from uuid import UUID

from controller.metadata import metadata_version as levels
from controller.metadata.partitions import NO_LEADER, RECOVERING, UNCHANGED, PartitionState
from controller.metadata.reassignment import Assignment, assignment_of, completed, in_replica_order
from wire.metadata_records import RECOVERY_UNCHANGED, PartitionChangeRecord

__all__ = [
    "Acceptable",
    "Desired",
    "Elected",
    "Election",
    "ElectionPolicy",
    "Target",
    "decide_change",
    "elect_leader",
    "eligible_leaders",
]


class Election(Enum):
    ONLINE = "online"  # keep the leader if it can be kept
    PREFERRED = "preferred"  # the first replica, if it can lead
    UNCLEAN = "unclean"  # as ONLINE, and then any replica at all: may lose records


class Acceptable(Protocol):
    def __call__(self, broker_id: int, directory: UUID, /) -> bool:
        """Is this broker up, and the directory of its replica online?"""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionPolicy:
    """What does not depend on the partition's own state."""

    acceptable: Acceptable
    metadata_version: int
    elr_enabled: bool = False  # feature eligible.leader.replicas.version
    min_insync_replicas: int = 1  # of the topic; matters with elr_enabled only


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """What the cause of a change asks for."""

    election: Election = Election.ONLINE
    isr: tuple[int, ...] | None = None  # None: as it is
    recovery_state: int | None = None
    assignment: Assignment | None = None
    lost: Collection[int] = ()  # brokers that stopped uncleanly: not eligible any more


@dataclass(frozen=True, slots=True)
class Elected:
    leader: int
    unclean: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The state that a change leads to, except for its leader."""

    assignment: Assignment
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


def decide_change(
    topic_id: UUID, index: int, state: PartitionState, *, desired: Desired, policy: ElectionPolicy
) -> PartitionChangeRecord | None:
    """The record that brings a partition to what `desired` asks for; None if nothing changes."""
    target = _target(state, desired)
    target = eligible_leaders(state, target, lost=desired.lost, policy=policy)
    elected = elect_leader(state, target, how=desired.election, policy=policy)
    target = _ended(after_election(state, target, elected, policy))
    assignment = target.assignment
    record = PartitionChangeRecord(
        partition_id=index,
        topic_id=topic_id,
        isr=_difference(target.isr, state.isr),
        leader=_recorded_leader(state, target, elected, policy),
        replicas=_difference(assignment.replicas, state.replicas),
        removing_replicas=_difference(assignment.removing, state.removing_replicas),
        adding_replicas=_difference(assignment.adding, state.adding_replicas),
        leader_recovery_state=_recovery_state(state, desired, elected, policy),
        directories=_recorded_directories(state, assignment, policy),
        eligible_leader_replicas=_difference(target.elr, state.eligible_leader_replicas),
        last_known_elr=_difference(target.last_known_elr, state.last_known_elr),
    )
    nothing = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    return None if record == nothing else record


def _target(state: PartitionState, desired: Desired) -> Target:
    """The desired replicas and ISR, after a reassignment that is complete has ended."""
    isr = state.isr if desired.isr is None else desired.isr
    assignment = desired.assignment or assignment_of(state)
    assignment = completed(assignment, isr) or assignment
    if assignment.replicas != state.replicas:
        isr = in_replica_order(assignment, isr)
    return Target(assignment=assignment, isr=isr)


def _ended(target: Target) -> Target:
    """An election from outside the ISR may complete a reassignment."""
    assignment = completed(target.assignment, target.isr)
    if assignment is None:
        return target
    isr = in_replica_order(assignment, target.isr)
    return replace(target, assignment=assignment, isr=isr, elr=())  # all replicas are in sync


def eligible_leaders(
    state: PartitionState, target: Target, *, lost: Collection[int], policy: ElectionPolicy
) -> Target:
    """The target with its eligible leader replicas, and the last known one (KIP-966).

    While the ISR is smaller than min.insync.replicas the high watermark stands still, so whoever
    was in it then holds every committed record. A partition is not held to more replicas than it
    has, here as on its leader.
    """
    replicas = target.assignment.replicas
    if policy.elr_enabled:
        if len(target.isr) >= _enough(target, policy):
            return target
        candidates = dict.fromkeys((*state.isr, *state.eligible_leader_replicas))
    else:
        # The feature was switched off. What it left is of use where there is no ISR: there,
        # nothing can have been committed since.
        candidates = dict.fromkeys(() if state.isr else state.eligible_leader_replicas)
    return replace(
        target,
        elr=tuple(
            replica
            for replica in candidates
            if replica in replicas and replica not in target.isr and replica not in lost
        ),
        last_known_elr=tuple(r for r in state.last_known_elr if r in replicas),
    )


def _enough(target: Target, policy: ElectionPolicy) -> int:
    """The ISR with which the high watermark moves."""
    return min(policy.min_insync_replicas, len(target.assignment.replicas))


def elect_leader(
    state: PartitionState, target: Target, *, how: Election, policy: ElectionPolicy
) -> Elected:
    """Choose a leader: from the ISR in replica order, and outside it only if `how` allows."""
    assignment = target.assignment
    directories = dict(zip(assignment.replicas, assignment.directories, strict=True))

    def is_acceptable(broker_id: int) -> bool:
        return broker_id in directories and policy.acceptable(broker_id, directories[broker_id])

    def is_eligible(broker_id: int) -> bool:
        clean = broker_id in target.isr or (not target.isr and broker_id in target.elr)
        return clean and is_acceptable(broker_id)

    for candidate in candidates_in_order(state.leader, assignment.replicas, how):
        if is_eligible(candidate):
            return Elected(candidate)
    last_resort: tuple[int, ...] = ()
    if policy.elr_enabled and not target.isr and not target.elr:
        last_resort = state.last_known_elr  # whoever left the ISR last lacks the least
    if how is Election.UNCLEAN:
        last_resort += assignment.replicas
    for candidate in last_resort:
        if is_acceptable(candidate):
            return Elected(candidate, unclean=True)
    return Elected(NO_LEADER)


def candidates_in_order(leader: int, replicas: tuple[int, ...], how: Election) -> tuple[int, ...]:
    """The candidates in the order in which they are asked; replicas are in order of preference."""
    current = () if leader == NO_LEADER else (leader,)
    if how is Election.PREFERRED:
        return (replicas[0], *current, *replicas[1:])
    return (*current, *replicas)


def after_election(
    state: PartitionState, target: Target, elected: Elected, policy: ElectionPolicy
) -> Target:
    """The target with what the election makes of ISR and eligible replicas."""
    leader = elected.leader
    if leader == NO_LEADER:
        if not policy.elr_enabled and not target.isr:
            # The last member stays listed: it alone is known to hold every committed record.
            return replace(target, isr=state.isr)
        last = state.isr[:1] if state.leader == NO_LEADER else (state.leader,)
        if not target.isr and last and last[0] in target.assignment.replicas:
            return replace(target, last_known_elr=last)
        return target
    if elected.unclean:
        return replace(target, isr=(leader,), elr=(), last_known_elr=())
    if leader not in target.isr:
        holds_still = policy.elr_enabled and _enough(target, policy) > 1
        rest = tuple(replica for replica in target.elr if replica != leader and holds_still)
        return replace(target, isr=(leader,), elr=rest, last_known_elr=())
    return replace(target, last_known_elr=())


def _recorded_leader(
    state: PartitionState, target: Target, elected: Elected, policy: ElectionPolicy
) -> int:
    """The leader to record; recording one raises the leader epoch even if it stays the same."""
    if elected.leader != state.leader:
        return elected.leader
    if not set(state.replicas) <= set(target.assignment.replicas):
        return elected.leader  # a removed replica must not be able to fetch as before
    shrinks = not set(state.isr) <= set(target.isr)
    if shrinks and policy.metadata_version < levels.NO_EPOCH_BUMP_ON_SHRINK:
        return elected.leader
    return UNCHANGED


def _recovery_state(
    state: PartitionState, desired: Desired, elected: Elected, policy: ElectionPolicy
) -> int:
    wanted = desired.recovery_state
    if elected.unclean and elected.leader != state.leader:
        wanted = RECOVERING
    if wanted == RECOVERING and policy.metadata_version < levels.RECOVERY_STATE:
        return RECOVERY_UNCHANGED
    if wanted is None or wanted == state.leader_recovery_state:
        return RECOVERY_UNCHANGED
    return wanted


def _recorded_directories(
    state: PartitionState, assignment: Assignment, policy: ElectionPolicy
) -> tuple[UUID, ...] | None:
    if policy.metadata_version < levels.DIRECTORIES:
        return None
    same = (assignment.replicas, assignment.directories) == (state.replicas, state.directories)
    return None if same else assignment.directories


def _difference(target: tuple[int, ...], now: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if target == now else target
