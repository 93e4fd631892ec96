"""What a leader does with one partition: take batches, note what followers have, move the high
watermark, and ask for ISR changes.

Applies the rules of isr.py to a `Partition`. Asking the controller is done by alterations.py,
answering whoever waits by the callers: each function says what it changed.

Source: KIP-497 (seed 003); Kafka's Partition.
"""

from dataclasses import dataclass
from typing import Protocol

from broker import isr
from broker.isr import Committed, FollowerProgress, PendingExpand, PendingShrink
from broker.partition import LeaderOf, Partition
from wire.batch import BatchHeader, assign
from wire.errors import ErrorCode
from wire.messages.partitions import IsrPartitionResult

__all__ = [
    "Peers",
    "accept_alteration",
    "advance_high_watermark",
    "append",
    "check_follower",
    "is_joinable",
    "joining_replicas",
    "min_isr",
    "note_follower_fetch",
    "propose_expand",
    "propose_shrink",
    "revert_alteration",
]


class Peers(Protocol):
    """What a leader must know of other brokers, from committed metadata."""

    def registered_epoch(self, broker_id: int) -> int | None:
        """None for a broker that is not registered, and where nobody knows of registrations."""
        ...

    def is_active(self, broker_id: int) -> bool:
        """Neither fenced nor shutting down."""
        ...


def min_isr(partition: Partition, role: LeaderOf) -> int:
    return isr.effective_min_isr(partition.settings.min_insync_replicas, len(role.replicas))


def append(partition: Partition, role: LeaderOf, batch: bytes, header: BatchHeader) -> int:
    """Append one validated batch; returns its base offset. The high watermark stays."""
    log = partition.open_log
    base_offset = log.end_offset
    records = assign(batch, base_offset=base_offset, leader_epoch=role.leader_epoch)
    log.append(records, (header._replace(base_offset=base_offset, leader_epoch=role.leader_epoch),))
    return base_offset


# --- followers ------------------------------------------------------------------------------


def check_follower(role: LeaderOf, broker_id: int, broker_epoch: int, peers: Peers) -> ErrorCode:
    """May this broker fetch as a follower of ours?

    A fetch of an earlier incarnation of the broker must not count for the present one, whose log
    may be shorter (KIP-903).
    """
    if broker_id not in role.followers:
        return ErrorCode.UNKNOWN_LEADER_EPOCH  # perhaps we have not heard yet that it is a replica
    registered = peers.registered_epoch(broker_id)
    if broker_epoch >= 0 and registered is not None and registered > broker_epoch:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerFetch:
    broker_id: int
    broker_epoch: int
    fetch_offset: int
    log_start_offset: int


def note_follower_fetch(
    partition: Partition, role: LeaderOf, fetch: FollowerFetch, now_ms: int
) -> None:
    follower = role.followers[fetch.broker_id]
    isr.note_fetch(
        follower,
        fetch_offset=fetch.fetch_offset,
        leader_end_offset=partition.open_log.end_offset,
        now_ms=now_ms,
    )
    follower.log_start_offset = fetch.log_start_offset
    follower.broker_epoch = fetch.broker_epoch


def is_joinable(follower: FollowerProgress, peers: Peers) -> bool:
    """Would the controller take this replica into the ISR?"""
    if not peers.is_active(follower.broker_id):
        return False
    registered = peers.registered_epoch(follower.broker_id)
    return registered is None or follower.broker_epoch in (-1, registered)


# --- high watermark -------------------------------------------------------------------------


def advance_high_watermark(
    partition: Partition, role: LeaderOf, peers: Peers, *, now_ms: int, lag_time_max_ms: int
) -> bool:
    """Move the high watermark as far as the replicas allow; did it move?

    Not at all while fewer replicas than min.insync.replicas are in sync, whatever a producer asked
    for: what consumers may read must survive as many failures as the topic promises.
    """
    log = partition.open_log
    if not isr.has_enough_replicas(len(role.isr.members), min_isr(partition, role)):
        return False
    candidate = isr.high_watermark_candidate(
        leader_end_offset=log.end_offset,
        followers=role.followers.values(),
        maximal=isr.maximal_isr(role.isr),
        joining=joining_replicas(
            partition, role, peers, now_ms=now_ms, lag_time_max_ms=lag_time_max_ms
        ),
    )
    if candidate <= log.high_watermark:
        return False
    log.high_watermark = candidate
    return True


def joining_replicas(
    partition: Partition, role: LeaderOf, peers: Peers, *, now_ms: int, lag_time_max_ms: int
) -> frozenset[int]:
    """Replicas outside the maximal ISR that could be added at any moment."""
    members = isr.maximal_isr(role.isr)
    if len(members) == len(role.replicas):
        return frozenset()
    end_offset = partition.open_log.end_offset
    return frozenset(
        follower.broker_id
        for follower in role.followers.values()
        if follower.broker_id not in members
        and isr.is_caught_up(
            follower,
            leader_end_offset=end_offset,
            now_ms=now_ms,
            lag_time_max_ms=lag_time_max_ms,
        )
        and is_joinable(follower, peers)
    )


# --- ISR changes ----------------------------------------------------------------------------


def propose_expand(
    partition: Partition, role: LeaderOf, follower: FollowerProgress, peers: Peers
) -> bool:
    """If `follower` may join the ISR, count on it from now on; ask the controller if True."""
    if not isr.may_expand(
        role.isr,
        follower,
        high_watermark=partition.open_log.high_watermark,
        epoch_start_offset=role.epoch_start_offset,
        is_eligible=is_joinable(follower, peers),
    ):
        return False
    role.isr = PendingExpand(members=role.isr.members, joining=follower.broker_id)
    return True


def propose_shrink(
    partition: Partition, role: LeaderOf, *, now_ms: int, lag_time_max_ms: int
) -> bool:
    """If members of the ISR lag, want them out; ask the controller if True."""
    leaving = isr.out_of_sync(
        role.isr,
        role.followers,
        leader_end_offset=partition.open_log.end_offset,
        now_ms=now_ms,
        lag_time_max_ms=lag_time_max_ms,
    )
    if not leaving:
        return False
    role.isr = PendingShrink(members=role.isr.members, leaving=leaving)
    return True


def accept_alteration(
    role: LeaderOf, asked: PendingExpand | PendingShrink, result: IsrPartitionResult
) -> bool:
    """The controller has made the change; False if the answer is out of date by now.

    What the metadata log said meanwhile wins unless the answer has the higher partition epoch. A
    smaller ISR holds from its place in that log only: a larger min.insync.replicas, recorded before
    it, may have made eligible leaders of those who leave, and an answer does not tell.
    """
    if role.isr is not asked or result.leader_epoch != role.leader_epoch:
        return False
    if result.partition_epoch < role.partition_epoch:
        return False
    if isinstance(asked, PendingShrink) and result.partition_epoch > role.partition_epoch:
        return False
    role.isr = Committed(members=result.isr)
    role.partition_epoch = result.partition_epoch
    role.leader_recovery_state = result.leader_recovery_state
    return True


def revert_alteration(role: LeaderOf, asked: PendingExpand | PendingShrink) -> None:
    """The controller has not made the change, for certain."""
    if role.isr is asked:
        role.isr = Committed(members=asked.members)
