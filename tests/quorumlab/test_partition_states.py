"""States of the ZooKeeper controller in quorum mode: all are named, the nearest is shown."""

import re
from pathlib import Path
from typing import Any

import pytest

from quorumlab.partition_states import (
    PartitionState,
    ReplicaState,
    partition_state,
    replica_state,
    state_lines,
    with_states,
)

ROOT = Path(__file__).parent.parent.parent
NAMES = [state.value for state in (*PartitionState, *ReplicaState)]

# As the Kafka Controller Redesign document lists them.
VALID_TRANSITIONS = """
NonExistentPartition -> NewPartition
NewPartition -> OnlinePartition, OfflinePartition
OnlinePartition -> OnlinePartition, OfflinePartition
OfflinePartition -> OnlinePartition, OfflinePartition, NonExistentPartition
NonExistentReplica -> NewReplica
NewReplica -> OnlineReplica, OfflineReplica
OnlineReplica -> OnlineReplica, OfflineReplica
OfflineReplica -> OnlineReplica, OfflineReplica, ReplicaDeletionStarted
ReplicaDeletionStarted -> ReplicaDeletionSuccessful, ReplicaDeletionIneligible
ReplicaDeletionSuccessful -> NonExistentReplica
ReplicaDeletionIneligible -> OnlineReplica, OfflineReplica
"""


def test_every_move_of_the_document_is_told_once() -> None:
    documented = [
        (before, after)
        for line in VALID_TRANSITIONS.strip().splitlines()
        for before, _, ends in [line.partition(" -> ")]
        for after in ends.split(", ")
    ]
    page = (ROOT / "docs/states.md").read_text()
    told = re.findall(r"^\| (\w+) \| (\w+) \| [^|]+ \| [^|]+ \|$", page, re.MULTILINE)
    told = [move for move in told if move[0] in NAMES]
    assert sorted(told) == sorted(documented)


def test_page_says_when_each_state_is_shown() -> None:
    page = (ROOT / "docs/states.md").read_text()
    shown = re.findall(r"^\| (\w+) \| [^|]+ \|$", page, re.MULTILINE)
    assert [name for name in shown if name in NAMES] == NAMES


@pytest.mark.parametrize(
    ("leader", "state"),
    [(1, PartitionState.ONLINE), (None, PartitionState.OFFLINE), (-1, PartitionState.OFFLINE)],
)
def test_partition_with_a_leader_is_online(leader: int | None, state: PartitionState) -> None:
    assert partition_state(leader) is state


@pytest.mark.parametrize(
    ("isr", "offline", "adding", "state"),
    [
        ((1, 2), (), (), ReplicaState.ONLINE),
        ((2,), (), (), ReplicaState.ONLINE),
        ((2,), (1,), (), ReplicaState.OFFLINE),
        ((1,), (1,), (), ReplicaState.OFFLINE),
        ((2,), (), (1,), ReplicaState.NEW),
        ((1, 2), (), (1,), ReplicaState.ONLINE),
        ((2,), (1,), (1,), ReplicaState.OFFLINE),
    ],
)
def test_nearest_state_of_replica_1(
    isr: tuple[int, ...], offline: tuple[int, ...], adding: tuple[int, ...], state: ReplicaState
) -> None:
    assert replica_state(1, isr=isr, offline=offline, adding=adding) is state


def test_lines_name_the_state_of_each_replica() -> None:
    topic: dict[str, Any] = {
        "topic": "t",
        "partitions": [
            {
                "partition": 0,
                "leader": 2,
                "replicas": [2, 1, 3],
                "isr": [2],
                "offline_replicas": [3],
            }
        ],
    }
    (line,) = state_lines(with_states(topic, {("t", 0): (1,)}))
    assert line == (
        "Topic: t\tPartition: 0\tState: OnlinePartition\t"
        "Replicas: 2=OnlineReplica,1=NewReplica,3=OfflineReplica"
    )
