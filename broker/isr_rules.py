"""Who may follow, join and stay in the ISR, and how far that lets the high watermark go.

`IsrRules` is what `broker.leaders` asks. `EligibleReplicas` are the rules of the present protocol
(`broker.leading`), with what committed metadata says of other brokers; the designs of before it
have others (`broker.zk.lag_limits`). `IsrKeeper` is who makes a change of the ISR true: the
controller that is asked for it, or ZooKeeper.
"""

from collections import deque
from typing import Protocol

from broker import leading
from broker.isr import FollowerProgress
from broker.leading import Peers
from broker.partition import LeaderOf, Partition
from wire.errors import ErrorCode

__all__ = ["EligibleReplicas", "IsrKeeper", "IsrRules"]


class IsrKeeper(Protocol):
    @property
    def decided(self) -> deque[Partition]:
        """Partitions whose ISR is pending no longer; the broker takes them when it settles."""
        ...

    def want(self, partition: Partition, role: LeaderOf, now_ms: int) -> None:
        """`role.isr` has become pending: have it made."""
        ...

    def tick(self, now_ms: int) -> None: ...

    def deadline_ms(self) -> int | None: ...


class IsrRules(Protocol):
    @property
    def looks_at_each_fetch(self) -> bool:
        """Must each fetch of a follower be noted, also one that stands at the leader's end?"""
        ...

    def check_follower(
        self, partition: Partition, role: LeaderOf, broker_id: int, broker_epoch: int, now_ms: int
    ) -> ErrorCode:
        """May this broker fetch as a follower of ours?"""
        ...

    def propose_expand(
        self, partition: Partition, role: LeaderOf, follower: FollowerProgress
    ) -> bool:
        """If `follower` may join, `role.isr` has become pending."""
        ...

    def propose_shrink(self, partition: Partition, role: LeaderOf, now_ms: int) -> bool:
        """If members lag, `role.isr` has become pending."""
        ...

    def advance_high_watermark(self, partition: Partition, role: LeaderOf, now_ms: int) -> bool:
        """Did it move?"""
        ...


class EligibleReplicas:
    looks_at_each_fetch = False

    def __init__(self, peers: Peers, lag_time_max_ms: int) -> None:
        self._peers = peers
        self._lag_time_max_ms = lag_time_max_ms

    def check_follower(
        self, partition: Partition, role: LeaderOf, broker_id: int, broker_epoch: int, now_ms: int
    ) -> ErrorCode:
        return leading.check_follower(role, broker_id, broker_epoch, self._peers)

    def propose_expand(
        self, partition: Partition, role: LeaderOf, follower: FollowerProgress
    ) -> bool:
        return leading.propose_expand(partition, role, follower, self._peers)

    def propose_shrink(self, partition: Partition, role: LeaderOf, now_ms: int) -> bool:
        return leading.propose_shrink(
            partition, role, now_ms=now_ms, lag_time_max_ms=self._lag_time_max_ms
        )

    def advance_high_watermark(self, partition: Partition, role: LeaderOf, now_ms: int) -> bool:
        return leading.advance_high_watermark(
            partition,
            role,
            self._peers,
            now_ms=now_ms,
            lag_time_max_ms=self._lag_time_max_ms,
        )
