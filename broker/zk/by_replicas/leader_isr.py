"""The commit thread of seed 002 is here as rules of the ISR, with the node that a leader writes.

The document's leader takes requests from `commitQ` one by one. It waits until every member of the
ISR has reached the request's offset, for KeepInSyncTime at most, and drops the members that have
not. Then each replica that is catching up (CUR) and has reached the offset joins. Then the high
watermark moves.

Here the log beyond the high watermark waits, and its first request is what every member must have.
Three things follow that differ from later designs:

- A member is dropped only while something waits for it: if nothing is written, nobody leaves.
- The records of a new leader beyond its high watermark are its first request: a replica that lacks
  them cannot join.
- A member that was told to close leaves when it has stopped fetching, whatever waits.

The document looks at CUR only when it commits; ours looks at every fetch. Otherwise a cluster that
was restarted would not be in sync before a client writes.

A change of the ISR is pending until its write is done, as in every design (isr.py). A write
that fails shows that another replica leads, or will soon, so the leader's node is read again. Until
that is known the change stays wanted: if only its answer was lost, it was made, and the joining
replica counts.

Source: seed 002, the commit thread ("write p.ISR to ZK").
"""

from collections import deque
from collections.abc import Mapping
from functools import partial

from broker.partition import isr
from broker.partition.isr import Committed, FollowerProgress, PendingExpand, PendingShrink
from broker.partition.partition import IsrChange, LeaderOf, Partition
from broker.zk.by_replicas.held import Held, ReplicaContext
from broker.zk.by_replicas.leader_changes import LeaderChanges
from broker.zk.by_replicas.partition_nodes import PartitionNodes
from broker.zk.isr_writes import tell_wanted, tell_written
from broker.zk.lag_limits import reached_by_members
from quorum.zookeeper.zk_procedures import Procedure
from wire.errors import ErrorCode
from wire.messages.fetching import ReplicaState
from wire.zk.control_rpc import TopicPartition

__all__ = ["CommitThread", "IsrNode"]


class CommitThread:
    looks_at_each_fetch = True

    def __init__(
        self,
        keep_in_sync_ms: int,
        held: Mapping[TopicPartition, Held],
        *,
        max_lag_records: int | None = None,
    ) -> None:
        """`max_lag_records`: a member that is further behind leaves, whatever waits (seed 004)."""
        self._keep_in_sync_ms = keep_in_sync_ms
        self._max_lag_records = max_lag_records
        self._held = held
        self._waits: dict[TopicPartition, tuple[LeaderOf, int]] = {}  # the first request, since

    def forget(self, of: TopicPartition) -> None:
        self._waits.pop(of, None)

    def _leaving(self, partition: Partition) -> tuple[int, ...]:
        """The replicas that were told to close."""
        held = self._held.get(_of(partition))
        return () if held is None else held.leaving

    # --- IsrRules -----------------------------------------------------------------------------

    def check_follower(
        self, partition: Partition, role: LeaderOf, replica: ReplicaState, now_ms: int
    ) -> ErrorCode:
        """AR and RAR may follow; a replica that was told to close may not."""
        broker_id = replica.replica_id
        if broker_id not in role.followers or broker_id in self._leaving(partition):
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE

    def after_fetch(
        self, partition: Partition, role: LeaderOf, follower: FollowerProgress, now_ms: int
    ) -> PendingExpand | None:
        """for each c in CUR: if (c.leo >= pr.offset) { p.ISR.add(c); p.CUR.delete(c) }"""
        members = role.isr.members
        if not isinstance(role.isr, Committed) or follower.broker_id in members:
            return None
        offset = max(partition.open_log.high_watermark, role.epoch_start_offset)
        if follower.log_end_offset < offset or follower.broker_id in self._leaving(partition):
            return None
        return PendingExpand(members=members, joining=follower.broker_id)

    def shrunk(self, partition: Partition, role: LeaderOf, now_ms: int) -> PendingShrink | None:
        """for each r in ISR: if (!offsetReached(r, pr.offset)) { p.ISR.delete(r); p.CUR.add(r) }"""
        if not isinstance(role.isr, Committed):
            return None
        late = [
            each
            for each in role.isr.members
            if each in role.followers
            and (
                self._has_not_reached(partition, role, role.followers[each], now_ms)
                or self._is_too_far_behind(partition, role.followers[each])
                or self._has_closed(partition, role.followers[each], now_ms)
            )
        ]
        return PendingShrink(members=role.isr.members, leaving=tuple(late)) if late else None

    def _has_not_reached(
        self, partition: Partition, role: LeaderOf, follower: FollowerProgress, now_ms: int
    ) -> bool:
        """offsetReached() within KeepInSyncTime, of the first request that waits."""
        led, since_ms = self._waits.get(_of(partition), (role, now_ms))
        is_over = led is role and now_ms - since_ms > self._keep_in_sync_ms
        return is_over and follower.log_end_offset <= partition.open_log.high_watermark

    def _is_too_far_behind(self, partition: Partition, follower: FollowerProgress) -> bool:
        if self._max_lag_records is None or follower.log_end_offset < 0:
            return False
        behind = partition.open_log.end_offset - follower.log_end_offset
        return behind > self._max_lag_records

    def _has_closed(self, partition: Partition, follower: FollowerProgress, now_ms: int) -> bool:
        return (
            follower.broker_id in self._leaving(partition)
            and now_ms - follower.last_fetch_ms > self._keep_in_sync_ms
        )

    def high_watermark(self, partition: Partition, role: LeaderOf, now_ms: int) -> int:
        """Commit what every member has; what is left waits from now on."""
        log, of = partition.open_log, _of(partition)
        reached = reached_by_members(partition, role)
        if reached >= log.end_offset:
            self._waits.pop(of, None)
        elif reached > log.high_watermark or self._waits.get(of, (None, 0))[0] is not role:
            self._waits[of] = (role, now_ms)
        return reached


def _of(partition: Partition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.index)


class IsrNode:
    def __init__(self, context: ReplicaContext, changes: LeaderChanges) -> None:
        self._outbox = context.outbox
        self._procedures = context.procedures
        self._nodes = PartitionNodes(context.design)
        self._held = context.held
        self.decided: deque[Partition] = deque()
        self._changes = changes

    def want(self, change: IsrChange, now_ms: int) -> None:
        partition = change.partition
        tell_wanted(self._outbox, partition.node_id)
        if not self._procedures.submit(f"isr of {partition.name}", partial(self._write, partition)):
            self._settle(change, change.asked.members)

    def tick(self, now_ms: int) -> None:
        """Nothing is due: a leader that still wants a change asks for it anew."""

    def deadline_ms(self) -> int | None:
        return None

    def _write(self, partition: Partition) -> Procedure[None]:
        held, change = self._held.get(_of(partition)), partition.isr_wanted
        if held is None or change is None:
            return
        members = isr.proposed_isr(change.asked)
        if (yield from self._nodes.write_isr(held, members)):
            tell_written(self._outbox, change.partition.node_id)
            self._settle(change, members)
            return
        self._outbox.trace("isr-not-written", partition=change.partition.name)
        self._changes.look_again(held.of, self._procedures.now_ms)

    def _settle(self, change: IsrChange, members: tuple[int, ...]) -> None:
        if change.end(members):
            self.decided.append(change.partition)
