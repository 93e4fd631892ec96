"""The ISR rules of seed 000 (maybe_change_ISR): three limits on lag, whoever is alive.

    - MAX_BYTES_LAG: a member that is further behind the leader is taken out
      (`replica.lag.max.messages`; the seed counts bytes, as offsets then did; ours count records);
    - MAX_TIME_LAG: so is a member whose log, behind the leader's, has not grown for so long;
    - MIN_BYTES_LAG: a replica that is less far behind is added.

Erratum: the document prints the last condition as `r.leo - leo_min < MIN_BYTES_LAG`, which holds
for every replica that is behind the slowest member, however far. "If a follower has fully caught
up" can only mean `leader.leo - r.leo`, and so it is read here (`is_printed` is what is printed).

One replica leaves at a time: the one with the smallest log end. Every broker that fetches is a
follower, also one that is not assigned yet (F.2.1): the leader learns of it by its first fetch.

The document's leader blocks until its write is done. Here the larger of both ISRs counts meanwhile,
which lets the high watermark go no further than a blocked leader would.
"""

from dataclasses import dataclass

from broker.partition import isr
from broker.partition.isr import Committed, FollowerProgress, PendingExpand, PendingShrink
from broker.partition.partition import LeaderOf, Partition
from wire.errors import ErrorCode
from wire.messages.fetching import ReplicaState

__all__ = ["LagLimits", "Limits", "may_join", "reached_by_members"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    max_lag_records: int = 4000  # Kafka 0.8's replica.lag.max.messages
    max_lag_ms: int = 10_000  # its replica.lag.time.max.ms
    min_lag_records: int = 1
    is_printed: bool = False


def may_join(limits: Limits, *, leader_end: int, slowest_end: int, replica_end: int) -> bool:
    behind = replica_end - slowest_end if limits.is_printed else leader_end - replica_end
    return behind < limits.min_lag_records


class LagLimits:
    looks_at_each_fetch = True

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def check_follower(
        self, partition: Partition, role: LeaderOf, replica: ReplicaState, now_ms: int
    ) -> ErrorCode:
        broker_id = replica.replica_id
        if broker_id not in role.followers:
            follower = FollowerProgress(broker_id=broker_id)
            end = partition.open_log.end_offset
            isr.start_epoch(follower, in_isr=False, leader_end_offset=end, now_ms=now_ms)
            role.followers[broker_id] = follower
        return ErrorCode.NONE

    def expanded(
        self, partition: Partition, role: LeaderOf, follower: FollowerProgress
    ) -> PendingExpand | None:
        members = role.isr.members
        if not isinstance(role.isr, Committed) or follower.broker_id in members:
            return None
        leader_end = partition.open_log.end_offset
        if not may_join(
            self._limits,
            leader_end=leader_end,
            slowest_end=min([leader_end, *(each.log_end_offset for each in _members(role))]),
            replica_end=follower.log_end_offset,
        ):
            return None
        return PendingExpand(members=members, joining=follower.broker_id)

    def shrunk(self, partition: Partition, role: LeaderOf, now_ms: int) -> PendingShrink | None:
        members = _members(role)
        if not isinstance(role.isr, Committed) or not members:
            return None
        leader_end = partition.open_log.end_offset
        slowest = min(members, key=lambda each: each.log_end_offset)
        behind = leader_end - slowest.log_end_offset
        lags = slowest.log_end_offset >= 0 and behind > self._limits.max_lag_records
        is_stuck = not isr.is_caught_up(
            slowest,
            leader_end_offset=leader_end,
            now_ms=now_ms,
            lag_time_max_ms=self._limits.max_lag_ms,
        )
        if not lags and not is_stuck:
            return None
        return PendingShrink(members=role.isr.members, leaving=(slowest.broker_id,))

    def high_watermark(self, partition: Partition, role: LeaderOf, now_ms: int) -> int:
        return reached_by_members(partition, role)


def reached_by_members(partition: Partition, role: LeaderOf) -> int:
    """leader.hw = min of leo of every replica in ISR"""
    log = partition.open_log
    candidate = isr.high_watermark_candidate(
        leader_end_offset=log.end_offset,
        followers=role.followers.values(),
        maximal=isr.maximal_isr(role.isr),
        joining=frozenset(),
    )
    return max(candidate, log.high_watermark)


def _members(role: LeaderOf) -> list[FollowerProgress]:
    return [role.followers[each] for each in role.isr.members if each in role.followers]
