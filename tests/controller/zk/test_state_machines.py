"""Seed 001's valid states and transitions, as its two lists have them."""

import pytest

from controller.zk.state_machines import (
    PARTITION_TRANSITIONS,
    REPLICA_TRANSITIONS,
    PartitionStage,
    ReplicaStage,
    StateMachine,
)


def listed(transitions: object) -> set[str]:
    return {
        f"{before.value} -> {', '.join(after.value for after in allowed)}"
        for before, allowed in transitions.items()  # type: ignore[attr-defined]
    }


def test_partition_transitions_are_those_of_the_document() -> None:
    assert listed(PARTITION_TRANSITIONS) == {
        "NonExistentPartition -> NewPartition",
        "NewPartition -> OnlinePartition, OfflinePartition",
        "OnlinePartition -> OnlinePartition, OfflinePartition",
        "OfflinePartition -> OnlinePartition, OfflinePartition, NonExistentPartition",
    }


def test_replica_transitions_are_those_of_the_document() -> None:
    assert listed(REPLICA_TRANSITIONS) == {
        "NonExistentReplica -> NewReplica",
        "NewReplica -> OnlineReplica, OfflineReplica",
        "OnlineReplica -> OnlineReplica, OfflineReplica",
        "OfflineReplica -> OnlineReplica, OfflineReplica, ReplicaDeletionStarted",
        "ReplicaDeletionStarted -> ReplicaDeletionSuccessful, ReplicaDeletionIneligible",
        "ReplicaDeletionSuccessful -> NonExistentReplica",
        "ReplicaDeletionIneligible -> OnlineReplica, OfflineReplica",
    }


def test_what_is_not_listed_does_not_exist_and_a_wrong_step_is_a_bug() -> None:
    stages: StateMachine[str, PartitionStage] = StateMachine(
        PartitionStage.NON_EXISTENT, PARTITION_TRANSITIONS
    )
    assert stages.of("p") is PartitionStage.NON_EXISTENT
    stages.become("p", PartitionStage.NEW, PartitionStage.ONLINE)
    with pytest.raises(AssertionError):
        stages.become("p", PartitionStage.NEW)


def test_replica_that_is_deleted_is_forgotten() -> None:
    stages: StateMachine[str, ReplicaStage] = StateMachine(
        ReplicaStage.NON_EXISTENT, REPLICA_TRANSITIONS
    )
    stages.begin("r", ReplicaStage.DELETION_SUCCESSFUL)
    stages.become("r", ReplicaStage.NON_EXISTENT)
    assert stages.among(["r"], ReplicaStage.NON_EXISTENT) == ["r"]
