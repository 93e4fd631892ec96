"""Followers that fetch, and are too slow.

D-LAG   a leader proposes to remove from the ISR each member that has lagged for longer than
        replica.lag.time.max.ms, for which it looks twice in that time, and no other member

A member that no longer fetches at all is fenced before long, and leaves the ISR by that: only one
that lives and lags needs its leader to notice.
"""

from collections.abc import Callable
from typing import NamedTuple

from broker.partition import isr
from broker.partition.isr import Committed, FollowerProgress, PendingShrink
from broker.partition.partition import LeaderOf, Partition
from jepsen_like.sim.assemblies.cluster.nodes import ClusterNode
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Effect

__all__ = ["LaggingMembers"]

_LATE_MS = 5  # of a timer


class _Lag(NamedTuple):
    """Since when in one leadership a member has lagged for too long, with nobody asked."""

    role: LeaderOf
    since_ms: int


class LaggingMembers(Observer):
    """Raises `Violation`."""

    def __init__(self, node_of: Callable[[Host], ClusterNode]) -> None:
        self._node_of = node_of
        self._lags: dict[tuple[int, Partition], _Lag] = {}
        self._shrinks: dict[tuple[int, Partition], PendingShrink] = {}  # those that were judged

    def started(self, host: Host) -> None:
        self._lags = {place: lag for place, lag in self._lags.items() if place[0] != host.node_id}
        self._shrinks = {
            place: shrink for place, shrink in self._shrinks.items() if place[0] != host.node_id
        }

    def settled(self, host: Host, effects: list[Effect]) -> None:
        broker = self._node_of(host).broker
        if broker is None or not len(broker.leaders):
            return
        lag_ms, now_ms = broker.config.replica_lag_time_max_ms, host.now_ms
        for partition in broker.replicas:
            role = partition.role
            if not isinstance(role, LeaderOf):
                continue
            place = (host.node_id, partition)
            self._leaves_no_other(place, role, now_ms, lag_ms)
            lagging = _lagging(partition, role, now_ms, lag_ms)
            if not lagging:
                self._lags.pop(place, None)
                continue
            lag = self._lags.get(place)
            if lag is None or lag.role is not role:
                self._lags[place] = _Lag(role, now_ms)
            elif now_ms - lag.since_ms > lag_ms // 2 + _LATE_MS:
                raise Violation(
                    "D-LAG",
                    f"{partition.name}: {lagging} lag, and {host.node_id} has not asked for"
                    f" {now_ms - lag.since_ms} ms: {role}",
                )

    def _leaves_no_other(
        self, place: tuple[int, Partition], role: LeaderOf, now_ms: int, lag_ms: int
    ) -> None:
        """Judged when the turn ends in which a change was asked for, and by the times alone."""
        shrink = role.isr
        if not isinstance(shrink, PendingShrink) or self._shrinks.get(place) is shrink:
            return
        self._shrinks[place] = shrink
        for member in shrink.leaving:
            follower = role.followers.get(member)
            if follower is not None and _is_within(follower, now_ms, lag_ms):
                raise Violation(
                    "D-LAG",
                    f"{place[1].name}: {member} is to leave the ISR at {now_ms} ms, and may lag"
                    f" for {lag_ms} ms: {follower}",
                )


def _is_within(follower: FollowerProgress, now_ms: int, lag_ms: int) -> bool:
    """Has it not lagged for too long, by what it had fetched before this turn?

    What it fetches in the turn itself, the leader may have learned after it had asked.
    """
    fetched_ms = follower.last_fetch_ms if follower.clock is None else now_ms
    return fetched_ms < now_ms and now_ms - follower.last_caught_up_ms <= lag_ms


def _lagging(partition: Partition, role: LeaderOf, now_ms: int, lag_ms: int) -> list[int]:
    """The members that should leave, if nothing has been asked for."""
    if not isinstance(role.isr, Committed):
        return []
    end_offset = partition.open_log.end_offset
    return [
        member
        for member in role.isr.members
        if (follower := role.followers.get(member)) is not None
        and not isr.is_caught_up(
            follower, leader_end_offset=end_offset, now_ms=now_ms, lag_time_max_ms=lag_ms
        )
    ]
