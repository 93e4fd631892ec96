"""In KRaft the committed metadata says which replicas may follow, join the ISR and stay, and how
far the high watermark may go.

The arithmetic is in isr.py; the older designs have other rules (`broker.zk.lag_limits`).

Source: KIP-497 (seed 003), KIP-903; Kafka's Partition.
"""

from dataclasses import replace
from typing import Protocol

from broker.partition import isr
from broker.partition.isr import (
    FollowerProgress,
    Pending,
    PendingExpand,
    PendingShrink,
    PendingStay,
)
from broker.partition.partition import LeaderOf, Partition
from wire.errors import ErrorCode
from wire.messages.fetching import ReplicaState

__all__ = ["EligibleReplicas", "Peers", "is_current", "is_joinable"]


class Peers(Protocol):
    """A leader knows this of other brokers, from committed metadata."""

    def registered_epoch(self, broker_id: int) -> int | None:
        """None for a broker that is not registered, and where nobody knows of registrations."""
        ...

    def is_active(self, broker_id: int) -> bool:
        """Neither fenced nor shutting down."""
        ...


def is_current(replica: ReplicaState, peers: Peers) -> bool:
    """Does the present incarnation of the broker fetch?

    A fetch of an earlier one must not count for it, as its log may be shorter (KIP-903).
    """
    registered = peers.registered_epoch(replica.replica_id)
    return replica.replica_epoch < 0 or registered is None or registered <= replica.replica_epoch


def is_joinable(follower: FollowerProgress, peers: Peers) -> bool:
    """Would the controller take this replica into the ISR?"""
    if not peers.is_active(follower.broker_id):
        return False
    registered = peers.registered_epoch(follower.broker_id)
    return registered is None or follower.broker_epoch in (-1, registered)


class EligibleReplicas:
    looks_at_each_fetch = False

    def __init__(self, peers: Peers, lag_time_max_ms: int) -> None:
        self._peers = peers
        self._lag_time_max_ms = lag_time_max_ms

    def check_follower(
        self, partition: Partition, role: LeaderOf, replica: ReplicaState, now_ms: int
    ) -> ErrorCode:
        if replica.replica_id not in role.followers:
            return ErrorCode.UNKNOWN_LEADER_EPOCH  # we may not have heard yet that it is a replica
        if not is_current(replica, self._peers):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    def after_fetch(
        self, partition: Partition, role: LeaderOf, follower: FollowerProgress, now_ms: int
    ) -> PendingExpand | None:
        if not isr.may_expand(
            role.isr,
            follower,
            start_offset=partition.open_log.start_offset,
            high_watermark=partition.open_log.high_watermark,
            epoch_start_offset=role.epoch_start_offset,
            is_eligible=is_joinable(follower, self._peers),
        ):
            return None
        return PendingExpand(members=role.isr.members, joining=follower.broker_id)

    def shrunk(self, partition: Partition, role: LeaderOf, now_ms: int) -> Pending | None:
        leaving = isr.out_of_sync(
            role.isr,
            role.followers,
            leader_end_offset=partition.open_log.end_offset,
            now_ms=now_ms,
            lag_time_max_ms=self._lag_time_max_ms,
        )
        if not leaving:
            return None
        if isinstance(role.isr, PendingStay):  # who may have joined counts on
            return None if role.isr.leaving == leaving else replace(role.isr, leaving=leaving)
        return PendingShrink(members=role.isr.members, leaving=leaving)

    def high_watermark(self, partition: Partition, role: LeaderOf, now_ms: int) -> int:
        """It stays while fewer replicas than min.insync.replicas are in sync, whatever a producer
        asked for: what consumers may read must survive as many failures as the topic promises.
        """
        log = partition.open_log
        if log.high_watermark == log.end_offset:
            return log.high_watermark  # all is committed, and it never falls
        if not isr.has_enough_replicas(len(role.isr.members), partition.min_isr):
            return log.high_watermark
        candidate = isr.high_watermark_candidate(
            leader_end_offset=log.end_offset,
            followers=role.followers.values(),
            maximal=isr.maximal_isr(role.isr),
            joining=self._joining(partition, role, now_ms),
        )
        return max(candidate, log.high_watermark)

    def _joining(self, partition: Partition, role: LeaderOf, now_ms: int) -> frozenset[int]:
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
                lag_time_max_ms=self._lag_time_max_ms,
            )
            and is_joinable(follower, self._peers)
        )
