"""Schedules of followers that rest in their fetch session, and then fetch no more.

A leader notes nothing of a follower that stands at its end (`broker.sessions`). Once the follower
is behind it must be judged at all, and from its last fetch on.
"""

from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule
from wire.messages.partitions import AlterPartitionRequest

__all__ = ["LAG_SCHEDULES"]

LAG_SCHEDULES: Schedules = {}


@schedule(LAG_SCHEDULES, finds=("forgets_who_stops_resting",))
def follower_that_stops_after_a_rest(production: Production) -> None:
    """c has rested for long when it stops fetching: x is acknowledged without it all the same."""
    stage = production.cluster(lag_time_max_ms=2_000)
    a, _, c = stage.cast()
    stage.wait(5_000)
    rules = stage.stop_fetching(c, a)
    record = stage.produce(b"x", to=a)
    stage.until(lambda: record.is_acknowledged, "x is acknowledged", bound="L-WR", within_ms=6_000)
    stage.let_go(*rules)
    stage.finish()


@schedule(LAG_SCHEDULES, finds=("judges_by_an_earlier_session",))
def follower_that_pauses_after_a_rest(production: Production) -> None:
    """c has rested for longer than the lag time, pauses for less, and is not asked to leave."""
    stage = production.cluster(lag_time_max_ms=8_000)
    a, _, c = stage.cast()
    stage.wait(12_000)
    asked = stage.hold(AlterPartitionRequest, source=a, target=stage.controller)
    rules = stage.stop_fetching(c, a)
    record = stage.produce(b"x", to=a)
    stage.wait(5_000)  # a looks for those that lag once in 4 s
    stage.let_go(*rules)
    stage.until(
        lambda: record.is_acknowledged and not asked.kept,
        "x is acknowledged by all, and c is still in the ISR",
        bound="L-ISR",
        within_ms=2_000,
    )
    stage.let_go(asked)
    stage.finish()
