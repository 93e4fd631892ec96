"""The partition and replica states of the ZooKeeper controller, as they look in quorum mode.

A controller of the ZooKeeper designs keeps a state for each partition and replica, and moves it
along a table. In quorum mode there is no such state: there are records. This module names the state
that comes nearest to what they say; docs/states.md says which records stand for each move.

Source: the Kafka Controller Redesign document (its PartitionStateMachine and ReplicaStateMachine).
"""

from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from typing import Any

__all__ = [
    "PartitionState",
    "ReplicaState",
    "partition_state",
    "replica_state",
    "state_lines",
    "with_states",
]


class PartitionState(Enum):
    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


class ReplicaState(Enum):
    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"


def partition_state(leader: int | None) -> PartitionState:
    """The nearest state of a partition that is in the metadata."""
    return PartitionState.OFFLINE if leader in (None, -1) else PartitionState.ONLINE


def replica_state(
    broker: int, *, isr: Collection[int], offline: Collection[int], adding: Collection[int]
) -> ReplicaState:
    """The nearest state of a replica of such a partition.

    Replicas are `offline` on brokers that are fenced, gone or without the directory; a reassignment
    brings those that are `adding`.
    """
    if broker in offline:
        return ReplicaState.OFFLINE
    if broker in adding and broker not in isr:
        return ReplicaState.NEW
    return ReplicaState.ONLINE


def with_states(
    topic: Mapping[str, Any], adding: Mapping[tuple[str, int], Collection[int]]
) -> dict[str, Any]:
    """A described topic with `state` and `replica_states` for each of its partitions."""
    return {
        **topic,
        "partitions": [_with_states(topic["topic"], row, adding) for row in topic["partitions"]],
    }


def _with_states(
    topic: str, row: Mapping[str, Any], adding: Mapping[tuple[str, int], Collection[int]]
) -> dict[str, Any]:
    states = {
        broker: replica_state(
            broker,
            isr=row["isr"],
            offline=row["offline_replicas"],
            adding=adding.get((topic, row["partition"]), ()),
        ).value
        for broker in row["replicas"]
    }
    return {**row, "state": partition_state(row["leader"]).value, "replica_states": states}


def state_lines(topic: Mapping[str, Any]) -> Iterator[str]:
    """A line a partition: its state and those of its replicas, in replica order."""
    for row in topic["partitions"]:
        replicas = ",".join(f"{broker}={state}" for broker, state in row["replica_states"].items())
        yield (
            f"Topic: {topic['topic']}\tPartition: {row['partition']}\t"
            f"State: {row['state']}\tReplicas: {replicas}"
        )
