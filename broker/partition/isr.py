"""Which followers are caught up, may join the ISR or must leave it, and what may be exposed.

These are pure rules and the values that they work on. They do not send AlterPartition
(alterations.py), store what the controller decided (partition.py) or read logs.

A leader that has asked for an ISR change does not know whether the controller has made it. So it
counts on the *maximal* ISR: the committed one, and the replica that it wants to add. Removing a
replica counts only once it is committed: if the high watermark ran ahead on the smaller set and the
request then failed, the removed replica could be elected without the records.

A request that nobody answered may still arrive. If the controller refuses its repetition for a
reason that can pass, the leader counts on the replica until the held request can do no harm: it
asks for the ISR as it is, which raises the version that the held one names.

Source: KIP-497 (seed 003); Kafka's Partition and Replica.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from quorum.log.fetch_progress import FetchProgress

__all__ = [
    "UNKNOWN_OFFSET",
    "Committed",
    "FollowerProgress",
    "IsrState",
    "Pending",
    "PendingExpand",
    "PendingShrink",
    "PendingStay",
    "SessionClock",
    "effective_min_isr",
    "has_enough_replicas",
    "high_watermark_candidate",
    "is_caught_up",
    "leave_session",
    "maximal_isr",
    "may_expand",
    "out_of_sync",
    "proposed_isr",
    "rest_in_session",
    "start_epoch",
]

UNKNOWN_OFFSET = -1


# --- the ISR and what we asked for ----------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The ISR is what the controller last decided, and no change is asked for."""

    members: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingExpand:
    members: tuple[int, ...]  # as committed
    joining: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingShrink:
    members: tuple[int, ...]  # as committed
    leaving: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingStay:
    """The ISR is to stay as it is, so that an earlier request for `joining` comes too late."""

    members: tuple[int, ...]  # as committed
    joining: int  # in the ISR, if that request has come before
    leaving: tuple[int, ...] = ()  # lag by now: to ask for less takes the version as well


Pending = PendingExpand | PendingShrink | PendingStay
IsrState = Committed | Pending


def maximal_isr(state: IsrState) -> tuple[int, ...]:
    """Every replica that may be in the ISR as the controller has it now."""
    match state:
        case Committed(members=members) | PendingShrink(members=members):
            return members
        case (
            PendingExpand(members=members, joining=joining)
            | PendingStay(members=members, joining=joining)
        ):
            return (*members, joining)
        case other:
            assert_never(other)


def proposed_isr(state: Pending) -> tuple[int, ...]:
    """The ISR to ask the controller for."""
    match state:
        case PendingExpand(members=members, joining=joining):
            return (*members, joining)
        case (
            PendingShrink(members=members, leaving=leaving)
            | PendingStay(members=members, leaving=leaving)
        ):
            return tuple(replica for replica in members if replica not in leaving)
        case other:
            assert_never(other)


# --- followers, as their fetches show them --------------------------------------------------


@dataclass(slots=True)
class SessionClock:
    """It tells when a fetch session was last used; all followers that rest in it share it."""

    last_fetch_ms: int


@dataclass(slots=True, kw_only=True)
class FollowerProgress(FetchProgress):
    """The leader of a partition knows this of a follower.

    A follower that stands at the leader's end *rests* in its fetch session: each fetch of the
    session is a fetch of this partition at its end, so `clock` stands for both times below, and
    nothing is noted here. Whatever happens to the partition or the session ends the rest first.
    """

    broker_id: int
    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    broker_epoch: int = -1  # as its fetch stated it; -1: it did not
    clock: SessionClock | None = None  # of the session in which it rests


def rest_in_session(follower: FollowerProgress, clock: SessionClock) -> None:
    """The follower has fetched at the leader's end: let the session's fetches count for it."""
    leave_session(follower)
    follower.clock = clock


def leave_session(follower: FollowerProgress) -> None:
    """Judge the follower by its own times again: its last fetch was that of its session."""
    clock, follower.clock = follower.clock, None
    if clock is not None:
        follower.last_fetch_ms = max(follower.last_fetch_ms, clock.last_fetch_ms)
        follower.last_caught_up_ms = max(follower.last_caught_up_ms, clock.last_fetch_ms)


def start_epoch(
    follower: FollowerProgress, *, in_isr: bool, leader_end_offset: int, now_ms: int
) -> None:
    """Forget what an earlier leader epoch learned; give members of the ISR a full lag time."""
    follower.clock = None
    follower.log_end_offset = UNKNOWN_OFFSET
    follower.log_start_offset = UNKNOWN_OFFSET
    follower.last_caught_up_ms = now_ms if in_isr else 0
    follower.last_fetch_ms = now_ms if in_isr else 0
    follower.leader_end_offset = leader_end_offset if in_isr else 0


def is_caught_up(
    follower: FollowerProgress, *, leader_end_offset: int, now_ms: int, lag_time_max_ms: int
) -> bool:
    """Has the follower everything, or had it within the lag time?"""
    return (
        follower.log_end_offset == leader_end_offset
        or now_ms - follower.last_caught_up_ms <= lag_time_max_ms
    )


# --- rules ----------------------------------------------------------------------------------


def effective_min_isr(min_insync_replicas: int, replica_count: int) -> int:
    """A partition of two replicas cannot have three in sync: it is not held to that."""
    return min(min_insync_replicas, replica_count)


def has_enough_replicas(isr_size: int, min_isr: int) -> bool:
    """min.insync.replicas: may acks=all count on this many?"""
    return isr_size >= min_isr


def high_watermark_candidate(
    *,
    leader_end_offset: int,
    followers: Iterable[FollowerProgress],
    maximal: tuple[int, ...],
    joining: frozenset[int],
) -> int:
    """The largest offset that every replica which matters has reached.

    Those are the maximal ISR, and `joining`: replicas outside it that are caught up and could be
    added at any moment. Waiting for the latter keeps the high watermark from running away from a
    follower that is about to join.
    """
    candidate = leader_end_offset
    for follower in followers:
        if follower.log_end_offset < candidate and (
            follower.broker_id in maximal or follower.broker_id in joining
        ):
            candidate = follower.log_end_offset
    return candidate


def may_expand(
    state: IsrState,
    follower: FollowerProgress,
    *,
    start_offset: int,
    high_watermark: int,
    epoch_start_offset: int,
    is_eligible: bool,
) -> bool:
    """May we ask for `follower` to join the ISR?

    It must have what is committed and, at the start of an epoch, have reached where this leader
    began: before that its log may still hold records that ours does not. If its log ends where ours
    starts, the two have no record to compare: it must first drop its own, as we have told it.
    """
    ends_where_ours_starts = follower.log_end_offset == start_offset
    return (
        isinstance(state, Committed)
        and follower.broker_id not in state.members
        and follower.log_end_offset >= high_watermark
        and follower.log_end_offset >= epoch_start_offset
        and not (ends_where_ours_starts and 0 <= follower.log_start_offset < start_offset)
        and is_eligible
    )


def out_of_sync(
    state: IsrState,
    followers: Mapping[int, FollowerProgress],
    *,
    leader_end_offset: int,
    now_ms: int,
    lag_time_max_ms: int,
) -> tuple[int, ...]:
    """The members of the ISR that have lagged for too long; none while another is pending."""
    if not isinstance(state, Committed | PendingStay):
        return ()
    return tuple(
        replica
        for replica in state.members
        if replica in followers
        and not is_caught_up(
            followers[replica],
            leader_end_offset=leader_end_offset,
            now_ms=now_ms,
            lag_time_max_ms=lag_time_max_ms,
        )
    )
