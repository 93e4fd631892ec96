"""Schedules of replicas that are moved.

Source: KIP-455.
"""

from jepsen_like.sim.cluster.client import TOPIC
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule
from jepsen_like.sim.schedules.stage import Stage
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

__all__ = ["MOVE_SCHEDULES"]

MOVE_SCHEDULES: Schedules = {}


@schedule(MOVE_SCHEDULES, finds=("ends_moves_when_the_added_are_in_sync",))
def move_to_a_replica_that_lags(production: Production) -> None:
    """c has left the ISR. The partition is to be on a and c, and not on b any more: b stays until
    c is in sync, though nobody is added."""
    stage = Stage(production)
    a, b, c = stage.cast()
    rules = stage.stop_fetching(c, a)
    stage.produce(b"x", to=a)
    stage.until(lambda: c not in stage.isr, "c has left the ISR")
    _move(stage, a, c)
    stage.wait(500)
    stage.let_go(*rules)
    stage.until(lambda: b not in stage.state.replicas, "b holds nothing any more")
    stage.finish()


def _move(stage: Stage, *replicas: int) -> None:
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    topic = ReassignableTopic(name=TOPIC, partitions=(partition,))
    stage.ask(stage.controller, AlterPartitionReassignmentsRequest(topics=(topic,)))
