"""The commit thread of seed 002, as rules: who is in sync decides what is committed, and when.

The document's leader takes requests from `commitQ` one by one. It waits until every member of the
ISR has reached the request's offset, for KeepInSyncTime at most; members that have not are dropped.
Then whoever is catching up (CUR) and has reached the offset joins. Then the high watermark moves.

What waits here is the log beyond the high watermark, and its first request is what nobody must be
without. Three things follow that differ from later designs:

- a member is dropped only while something waits for it: nothing is written, nobody leaves;
- what a new leader has beyond its high watermark is its first request: who lacks it cannot join;
- a member that was told to close leaves when it has stopped fetching, whatever waits.

Where the document looks at CUR only when it commits, ours does so at every fetch: a cluster that
was restarted would else not be in sync before somebody writes.
"""

from collections.abc import Callable, Collection

from broker import isr
from broker.isr import Committed, FollowerProgress, PendingExpand, PendingShrink
from broker.partition import LeaderOf, Partition
from wire.errors import ErrorCode
from wire.zk.control_rpc import TopicPartition

__all__ = ["CommitThread"]


class CommitThread:
    """`leaving` are the replicas of a partition that were told to close."""

    looks_at_each_fetch = True

    def __init__(
        self, keep_in_sync_ms: int, leaving: Callable[[TopicPartition], Collection[int]]
    ) -> None:
        self._keep_in_sync_ms = keep_in_sync_ms
        self._leaving = leaving
        self._waits: dict[TopicPartition, tuple[LeaderOf, int]] = {}  # the first request, since

    def forget(self, of: TopicPartition) -> None:
        self._waits.pop(of, None)

    # --- IsrRules -----------------------------------------------------------------------------

    def check_follower(
        self, partition: Partition, role: LeaderOf, broker_id: int, broker_epoch: int, now_ms: int
    ) -> ErrorCode:
        """AR and RAR follow; whoever was closed does not any more."""
        if broker_id not in role.followers or broker_id in self._leaving(_of(partition)):
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE

    def propose_expand(
        self, partition: Partition, role: LeaderOf, follower: FollowerProgress
    ) -> bool:
        """for each c in CUR: if (c.leo >= pr.offset) { p.ISR.add(c); p.CUR.delete(c) }"""
        members = role.isr.members
        if not isinstance(role.isr, Committed) or follower.broker_id in members:
            return False
        offset = max(partition.open_log.high_watermark, role.epoch_start_offset)
        if follower.log_end_offset < offset or follower.broker_id in self._leaving(_of(partition)):
            return False
        role.isr = PendingExpand(members=members, joining=follower.broker_id)
        return True

    def propose_shrink(self, partition: Partition, role: LeaderOf, now_ms: int) -> bool:
        """for each r in ISR: if (!offsetReached(r, pr.offset)) { p.ISR.delete(r); p.CUR.add(r) }"""
        if not isinstance(role.isr, Committed):
            return False
        late = [
            each
            for each in role.isr.members
            if each in role.followers
            and (
                self._has_not_reached(partition, role, role.followers[each], now_ms)
                or self._has_closed(partition, role.followers[each], now_ms)
            )
        ]
        if not late:
            return False
        role.isr = PendingShrink(members=role.isr.members, leaving=tuple(late))
        return True

    def _has_not_reached(
        self, partition: Partition, role: LeaderOf, follower: FollowerProgress, now_ms: int
    ) -> bool:
        """offsetReached() within KeepInSyncTime, of the first request that waits."""
        led, since_ms = self._waits.get(_of(partition), (role, now_ms))
        is_over = led is role and now_ms - since_ms > self._keep_in_sync_ms
        return is_over and follower.log_end_offset <= partition.open_log.high_watermark

    def _has_closed(self, partition: Partition, follower: FollowerProgress, now_ms: int) -> bool:
        return (
            follower.broker_id in self._leaving(_of(partition))
            and now_ms - follower.last_fetch_ms > self._keep_in_sync_ms
        )

    def advance_high_watermark(self, partition: Partition, role: LeaderOf, now_ms: int) -> bool:
        """Commit what every member has; what is left waits from now on."""
        log, of = partition.open_log, _of(partition)
        candidate = isr.high_watermark_candidate(
            leader_end_offset=log.end_offset,
            followers=role.followers.values(),
            maximal=isr.maximal_isr(role.isr),
            joining=frozenset(),
        )
        moves = candidate > log.high_watermark
        if moves:
            log.high_watermark = candidate
        if log.high_watermark >= log.end_offset:
            self._waits.pop(of, None)
        elif moves or self._waits.get(of, (None, 0))[0] is not role:
            self._waits[of] = (role, now_ms)
        return moves


def _of(partition: Partition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.index)
