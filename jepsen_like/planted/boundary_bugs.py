"""Planted bugs of brokers and controllers that differ from the rule at its exact boundary only."""

from typing import Any

from broker.membership import alterations
from broker.partition import isr
from broker.partition.partition import IsrChange
from controller.metadata import alter_partition
from controller.metadata.partitions import RECOVERED, RECOVERING, PartitionState
from jepsen_like.planted.planting import Plants, plant_in
from wire.message import replace as replace_message
from wire.messages.partitions import AlterPartitionRequest, IsrPartition

__all__ = ["BOUNDARY_PLANTS", "BOUNDARY_SURVIVORS"]

BOUNDARY_PLANTS: Plants = {}
BOUNDARY_SURVIVORS: Plants = {}

# What a plant calls of the rule that it replaces.
_is_caught_up = isr.is_caught_up
_is_invalid_recovery = alter_partition.is_invalid_recovery
_alter_partition_request = alterations.alter_partition_request


@plant_in(BOUNDARY_PLANTS, isr, "is_caught_up", seeds_max=20)
def takes_the_boundary_for_lagging(
    follower: isr.FollowerProgress, *, lag_time_max_ms: int, **known: Any
) -> bool:
    """Breaks: who had everything replica.lag.time.max.ms ago, and not before, is caught up."""
    return _is_caught_up(follower, lag_time_max_ms=lag_time_max_ms - 1, **known)


@plant_in(BOUNDARY_PLANTS, alterations, "alter_partition_request", seeds_max=20)
def goes_on_recovering(
    changes: tuple[IsrChange, ...], node_id: int, broker_epoch: int
) -> AlterPartitionRequest:
    """Breaks: a leader that asks for an ISR has recovered (KIP-704)."""
    request = _alter_partition_request(changes, node_id, broker_epoch)
    states = {
        (each.partition.topic_id, each.partition.index): each.role.leader_recovery_state
        for each in changes
    }
    topics = tuple(
        replace_message(
            topic,
            partitions=tuple(
                replace_message(
                    asked, leader_recovery_state=states[(topic.topic_id, asked.partition_index)]
                )
                for asked in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return replace_message(request, topics=topics)


# --- what a second rule hides -----------------------------------------------------------------

# A shipped leader says with every change of its ISR that it has recovered. Together with
# `goes_on_recovering` this breaks M-REC.


@plant_in(BOUNDARY_SURVIVORS, alter_partition, "is_invalid_recovery")
def lets_two_recover(state: PartitionState, asked: IsrPartition) -> bool:
    """Breaks: a recovering leader is alone in its ISR: two are too many (KIP-704)."""
    is_pair = len(asked.new_isr_with_epochs) == 2 and asked.leader_recovery_state == RECOVERING
    if is_pair:
        return state.leader_recovery_state == RECOVERED
    return _is_invalid_recovery(state, asked)
