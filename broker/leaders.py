"""The partitions that this broker leads: what follows from an append, a follower's fetch, a change
of the ISR, and the passing of time.

Joins the rules (isr_rules.py) with what makes a change of the ISR true. Notes each partition that
has moved; the broker tells those who wait (producers for the high watermark, fetchers for data).

Source: Kafka's Partition and ReplicaManager.
"""

from broker import leading
from broker.isr import FollowerProgress
from broker.isr_rules import IsrKeeper, IsrRules
from broker.lag_watch import LagWatch, is_at_rest
from broker.leading import FollowerFetch
from broker.local_log import Moves
from broker.outbox import Outbox
from broker.partition import LeaderOf, Partition
from wire.errors import ErrorCode
from wire.messages.fetching import ReplicaState

__all__ = ["Leaders"]


class Leaders:
    def __init__(
        self,
        *,
        rules: IsrRules,
        keeper: IsrKeeper,
        check_interval_ms: int,
        outbox: Outbox,
        moves: Moves,
        lag_watch: LagWatch,
    ) -> None:
        """`check_interval_ms`: how often members that lag are looked for. `moves` is told of
        partitions whose ISR has changed, and of followers whose log starts elsewhere."""
        self._rules = rules
        self._keeper = keeper
        self._check_interval_ms = check_interval_ms
        self._outbox = outbox
        self._moves = moves
        self._lag_watch = lag_watch
        self._led: dict[Partition, None] = {}
        self._next_check_ms: int | None = None

    def __len__(self) -> int:
        return len(self._led)

    def elected(self, partition: Partition, now_ms: int) -> None:
        """The partition leads a new epoch."""
        self._led[partition] = None
        if self._next_check_ms is None:
            self._next_check_ms = now_ms + self._check_interval_ms
        self.changed(partition, now_ms)

    def resigned(self, partition: Partition) -> None:
        self._led.pop(partition, None)
        self._lag_watch.discard(partition)
        if not self._led:
            self._next_check_ms = None

    def changed(self, partition: Partition, now_ms: int) -> None:
        """ISR, replicas or end of a led partition may have changed: what does that commit?"""
        role = partition.role
        assert isinstance(role, LeaderOf), role
        self._lag_watch.add(partition)
        self._advance(partition, role, now_ms)
        self._moves.note(partition.name)

    def check_follower(
        self, partition: Partition, role: LeaderOf, replica: ReplicaState, now_ms: int
    ) -> ErrorCode:
        """May this replica fetch as a follower?"""
        return self._rules.check_follower(
            partition, role, replica.replica_id, replica.replica_epoch, now_ms
        )

    def fetched(
        self, partition: Partition, role: LeaderOf, fetch: FollowerFetch, now_ms: int
    ) -> None:
        """A follower has asked for what lies behind `fetch.fetch_offset`, so it has the rest."""
        follower = role.followers[fetch.broker_id]
        before = follower.log_end_offset
        start_before = follower.log_start_offset
        leading.note_follower_fetch(partition, role, fetch, now_ms)
        if self._rules.propose_expand(partition, role, follower):
            self._ask(partition, role, now_ms)
        if follower.log_end_offset != before:
            self._advance(partition, role, now_ms)
        if follower.log_start_offset != start_before:
            self._moves.note(partition.name)

    def resting(
        self, partition: Partition, role: LeaderOf, replica: ReplicaState
    ) -> FollowerProgress | None:
        """The follower, if fetches of its session need not note that it stands at our end."""
        follower = role.followers.get(replica.replica_id)
        if (
            follower is None
            or self._rules.looks_at_each_fetch
            or follower.broker_id not in role.isr.members
            or follower.log_end_offset != partition.open_log.end_offset
        ):
            return None
        return follower

    def decided(self, partition: Partition, now_ms: int) -> None:
        """A change of the ISR that was asked for has been made, or is not going to be."""
        role = partition.role
        if isinstance(role, LeaderOf):
            self._trace_isr(partition, role)
            self.changed(partition, now_ms)

    def peers_changed(self, now_ms: int) -> None:
        """A broker came, went or was fenced: a replica that may no longer join holds up nobody."""
        for partition in self._lag_watch:
            role = partition.role
            if not isinstance(role, LeaderOf):
                continue
            log = partition.open_log
            if log.high_watermark < log.end_offset:
                self._advance(partition, role, now_ms)

    def tick(self, now_ms: int) -> None:
        """Twice in a lag time: who has fallen behind?"""
        if self._next_check_ms is None or now_ms < self._next_check_ms:
            return
        self._next_check_ms = now_ms + max(self._check_interval_ms, 1)
        for partition in self._lag_watch:
            role = partition.role
            if isinstance(role, LeaderOf) and self._rules.propose_shrink(partition, role, now_ms):
                self._ask(partition, role, now_ms)
        self.peers_changed(now_ms)
        for partition in self._lag_watch:
            role = partition.role
            if not isinstance(role, LeaderOf) or is_at_rest(partition, role):
                self._lag_watch.discard(partition)

    def deadline_ms(self) -> int | None:
        return self._next_check_ms

    def _advance(self, partition: Partition, role: LeaderOf, now_ms: int) -> None:
        self._rules.advance_high_watermark(partition, role, now_ms)

    def _ask(self, partition: Partition, role: LeaderOf, now_ms: int) -> None:
        self._trace_isr(partition, role)
        self._keeper.want(partition, role, now_ms)

    def _trace_isr(self, partition: Partition, role: LeaderOf) -> None:
        self._outbox.trace(
            "isr",
            partition=partition.name,
            state=type(role.isr).__name__,
            members=role.isr.members,
            leader_epoch=role.leader_epoch,
            partition_epoch=role.partition_epoch,
        )
