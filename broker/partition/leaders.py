"""This broker tells the partitions that it leads that time has passed, and has their ISRs changed.

Each change of an ISR that a partition wants goes to the `IsrKeeper`, which has it made. Now and
then `Leaders` looks for replicas that lag.

Source: Kafka's ReplicaManager (maybeShrinkIsr).
"""

from collections import deque
from collections.abc import Iterator
from typing import Protocol

from broker.partition.lag_watch import LagWatch, is_at_rest
from broker.partition.partition import IsrChange, LeaderOf, Partition, Progress
from quorum.core.outbox import Outbox

__all__ = ["IsrKeeper", "Leaders"]


class IsrKeeper(Protocol):
    """A keeper makes a change of the ISR true: it asks the controller for it, or ZooKeeper."""

    @property
    def decided(self) -> deque[Partition]:
        """Partitions whose ISR is pending no longer; the broker takes them when it settles."""
        ...

    def want(self, change: IsrChange, now_ms: int) -> None:
        """The ISR has become pending: have it made."""
        ...

    def tick(self, now_ms: int) -> None: ...

    def deadline_ms(self) -> int | None: ...


class Leaders:
    def __init__(
        self, *, keeper: IsrKeeper, check_interval_ms: int, outbox: Outbox, lag_watch: LagWatch
    ) -> None:
        """`check_interval_ms`: how often members that lag are looked for."""
        self._keeper = keeper
        self._check_interval_ms = check_interval_ms
        self._outbox = outbox
        self._lag_watch = lag_watch
        self._led: dict[Partition, None] = {}
        self._next_check_ms: int | None = None

    def __len__(self) -> int:
        return len(self._led)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._led)

    def elected(self, partition: Partition, now_ms: int) -> None:
        """The partition leads a new epoch."""
        self._led[partition] = None
        if self._next_check_ms is None:
            self._next_check_ms = now_ms + self._check_interval_ms

    def resigned(self, partition: Partition) -> None:
        self._led.pop(partition, None)
        self._lag_watch.discard(partition)
        if not self._led:
            self._next_check_ms = None

    def moved(self, partition: Partition) -> None:
        """A led partition is not at rest, or may not be."""
        self._lag_watch.add(partition)

    def follow(self, progress: Progress, now_ms: int) -> None:
        """Have made what a led partition wants."""
        change = progress.isr_wanted
        if change is not None:
            self._trace_isr(change.partition, change.role)
            self._keeper.want(change, now_ms)

    def take_decided(self, now_ms: int) -> None:
        """Changes of ISRs that were asked for have been made, or are not going to be."""
        decided = self._keeper.decided
        while decided:
            partition = decided.popleft()
            if isinstance(partition.role, LeaderOf):
                self._trace_isr(partition, partition.role)
                partition.decided(now_ms)

    def peers_changed(self, now_ms: int) -> None:
        """A broker came, went or was fenced: a replica that may no longer join holds up nobody."""
        for partition in self._lag_watch:
            if isinstance(partition.role, LeaderOf):
                partition.peers_changed(now_ms)

    def tick(self, now_ms: int) -> None:
        """Twice in a lag time: who has fallen behind?"""
        if self._next_check_ms is None or now_ms < self._next_check_ms:
            return
        self._next_check_ms = now_ms + max(self._check_interval_ms, 1)
        for partition in self._lag_watch:
            if isinstance(partition.role, LeaderOf):
                self.follow(partition.time_passed(now_ms), now_ms)
        self.peers_changed(now_ms)
        for partition in self._lag_watch:
            role = partition.role
            if not isinstance(role, LeaderOf) or is_at_rest(partition, role):
                self._lag_watch.discard(partition)

    def deadline_ms(self) -> int | None:
        return self._next_check_ms

    def _trace_isr(self, partition: Partition, role: LeaderOf) -> None:
        self._outbox.trace(
            "isr",
            partition=partition.name,
            state=type(role.isr).__name__,
            members=role.isr.members,
            leader_epoch=role.leader_epoch,
            partition_epoch=role.partition_epoch,
        )
