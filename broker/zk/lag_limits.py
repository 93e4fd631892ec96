"""The ISR rules of seed 000 (maybe_change_ISR): three limits on lag, whoever is alive.

    - MAX_BYTES_LAG: a member that is further behind the leader is taken out
      (`replica.lag.max.messages`; the seed counts bytes, as offsets then did; ours count records);
    - MAX_TIME_LAG: so is a member behind the leader that has not fetched for so long, since each
      fetch updates its leo. One that goes on fetching, and never catches up, stays;
    - MIN_BYTES_LAG: a replica that is less far behind is added.

All of it is looked at with each fetch of any follower, and from time to time for those that fetch
no more. One replica leaves at a time, the one with the smallest log end, and one joins. Who stands
at the leader's end is never the slowest: the leader is a member, too. A replica that would have to
leave at once does not join, else the two would alternate for ever.

Erratum: the document prints the last condition as `r.leo - leo_min < MIN_BYTES_LAG`, which holds
for every replica that is behind the slowest member, however far. "If a follower has fully caught
up" can only mean `leader.leo - r.leo`, and so it is read here (`is_printed` is what is printed).

Every broker that fetches is a follower, also one that is not assigned yet (F.2.1): the leader
learns of it by its first fetch.

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

    def after_fetch(
        self, partition: Partition, role: LeaderOf, follower: FollowerProgress, now_ms: int
    ) -> PendingExpand | PendingShrink | None:
        """maybe_change_ISR()"""
        shrunk = self.shrunk(partition, role, now_ms)
        return shrunk if shrunk is not None else self._expanded(partition, role, now_ms)

    def _expanded(self, partition: Partition, role: LeaderOf, now_ms: int) -> PendingExpand | None:
        """for each replica r not in ISR: if it is less than MIN_BYTES_LAG behind, ISR + r"""
        members = role.isr.members
        if not isinstance(role.isr, Committed) or len(members) > len(role.followers):
            return None
        leader_end = partition.open_log.end_offset
        slowest_end = min([leader_end, *(each.log_end_offset for each in _members(role))])
        for each in role.followers.values():
            if (
                each.broker_id not in members
                and each.log_end_offset >= 0
                and not self._is_silent(each, now_ms)
                and may_join(
                    self._limits,
                    leader_end=leader_end,
                    slowest_end=slowest_end,
                    replica_end=each.log_end_offset,
                )
            ):
                return PendingExpand(members=members, joining=each.broker_id)
        return None

    def shrunk(self, partition: Partition, role: LeaderOf, now_ms: int) -> PendingShrink | None:
        members = _members(role)
        if not isinstance(role.isr, Committed) or not members:
            return None
        slowest = min(members, key=lambda each: (each.log_end_offset, each.last_fetch_ms))
        behind = partition.open_log.end_offset - slowest.log_end_offset
        lags = slowest.log_end_offset >= 0 and behind > self._limits.max_lag_records
        if lags or (behind > 0 and self._is_silent(slowest, now_ms)):
            return PendingShrink(members=role.isr.members, leaving=(slowest.broker_id,))
        return None

    def _is_silent(self, follower: FollowerProgress, now_ms: int) -> bool:
        """Has its leo not been updated for more than MAX_TIME_LAG?"""
        return now_ms - follower.last_fetch_ms > self._limits.max_lag_ms

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
