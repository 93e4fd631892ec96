"""The partition and replica states of the ZooKeeper controller, as they look in quorum mode.

A controller of the ZooKeeper designs keeps a state for each partition and replica, and moves it
along a table. In quorum mode there is no such state: there are records, and what they say of a
partition. This names the nearest state, and says for each move of the tables which records stand
for it, or that nothing does. docs/states.md is made from here.

Source: the Kafka Controller Redesign document (its PartitionStateMachine and ReplicaStateMachine).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = [
    "MOVES",
    "Move",
    "PartitionState",
    "ReplicaState",
    "markdown",
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


State = PartitionState | ReplicaState


# --- what is shown ----------------------------------------------------------------------------


def partition_state(leader: int | None) -> PartitionState:
    """The nearest state of a partition that is in the metadata."""
    return PartitionState.OFFLINE if leader in (None, -1) else PartitionState.ONLINE


def replica_state(
    broker: int,
    *,
    isr: Collection[int],
    offline: Collection[int],
    adding: Collection[int],
) -> ReplicaState:
    """The nearest state of a replica of such a partition.

    `offline` are replicas on brokers that are fenced, gone or without the directory; `adding` are
    those that a reassignment brings.
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


# --- what stands for each move --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Move:
    """`records` is None where nothing stands for the move; `story` says why, or when it happens."""

    before: State
    after: State
    records: str | None
    story: str


_P, _R = PartitionState, ReplicaState
_CHANGE = "PartitionChange"

MOVES: tuple[Move, ...] = (
    Move(
        _P.NON_EXISTENT,
        _P.NEW,
        None,
        "A partition is created with its leader and ISR: one Partition record is this move and the"
        " next.",
    ),
    Move(
        _P.NEW,
        _P.ONLINE,
        "Topic, Partition",
        "CreateTopics and CreatePartitions: the first active replica leads, all active ones are in"
        " sync.",
    ),
    Move(
        _P.NEW,
        _P.OFFLINE,
        None,
        "A partition without one active replica is refused (INVALID_REPLICATION_FACTOR,"
        " INVALID_REPLICA_ASSIGNMENT).",
    ),
    Move(
        _P.ONLINE,
        _P.ONLINE,
        f"{_CHANGE} with a leader or an ISR",
        "AlterPartition, ElectLeaders, balancing, reassignment, controlled shutdown, or the failure"
        " of a broker or directory. The partition epoch grows, and with a leader the leader epoch.",
    ),
    Move(
        _P.ONLINE,
        _P.OFFLINE,
        f"{_CHANGE} with leader -1",
        "No replica that may lead is left: beside BrokerRegistrationChange (fenced, shutting down,"
        " fewer directories) or UnregisterBroker.",
    ),
    Move(
        _P.OFFLINE,
        _P.ONLINE,
        f"{_CHANGE} with a leader",
        "A replica that may lead is unfenced (beside BrokerRegistrationChange), or an unclean"
        " election: then the leader recovery state is 1, and 0 once the leader says so.",
    ),
    Move(
        _P.OFFLINE,
        _P.OFFLINE,
        None,
        "An election that finds nobody records nothing. Replicas or ISR may still change.",
    ),
    Move(
        _P.OFFLINE,
        _P.NON_EXISTENT,
        "RemoveTopic",
        "At once, and from OnlinePartition as well: nobody is asked first.",
    ),
    Move(
        _R.NON_EXISTENT,
        _R.NEW,
        f"Partition, or {_CHANGE} with replicas and adding replicas",
        "A new partition, or a reassignment that brings the replica.",
    ),
    Move(
        _R.NEW,
        _R.ONLINE,
        f"Partition, or {_CHANGE} with an ISR",
        "At creation with the same record, if the broker is active; in a reassignment when"
        " AlterPartition brings it into the ISR.",
    ),
    Move(
        _R.NEW,
        _R.OFFLINE,
        "BrokerRegistrationChange with fenced 1",
        "Its broker fails before the replica is in sync. A replica that is created on a fenced"
        " broker begins here.",
    ),
    Move(
        _R.ONLINE,
        _R.ONLINE,
        _CHANGE,
        "Leader or ISR of its partition change; the broker sees the record and obeys.",
    ),
    Move(
        _R.ONLINE,
        _R.OFFLINE,
        f"BrokerRegistrationChange or UnregisterBroker, and {_CHANGE}",
        "Its broker is fenced, shuts down, loses the directory or is unregistered; the second"
        " record takes it out of the ISR, unless it is the last one there.",
    ),
    Move(
        _R.OFFLINE,
        _R.ONLINE,
        "BrokerRegistrationChange with fenced -1",
        "After RegisterBroker, with which a process begins, fenced. AlterPartition brings it back"
        " into the ISR later.",
    ),
    Move(
        _R.OFFLINE,
        _R.OFFLINE,
        None,
        "A broker that registers again, or is fenced while it shuts down, changes itself only.",
    ),
    Move(
        _R.OFFLINE,
        _R.DELETION_STARTED,
        None,
        "RemoveTopic, or PartitionChange with replicas that lack it, makes it NonExistentReplica in"
        " the metadata; its broker deletes the files when it sees the record.",
    ),
    Move(
        _R.DELETION_STARTED,
        _R.DELETION_SUCCESSFUL,
        None,
        "Nobody reports a deletion, and nobody waits for one.",
    ),
    Move(
        _R.DELETION_STARTED,
        _R.DELETION_INELIGIBLE,
        None,
        "A broker that is away deletes at its next start what the metadata does not assign to it,"
        " also if the topic was created again.",
    ),
    Move(
        _R.DELETION_SUCCESSFUL,
        _R.NON_EXISTENT,
        None,
        "It is NonExistentReplica since the record that removed it.",
    ),
    Move(_R.DELETION_INELIGIBLE, _R.ONLINE, None, "A deletion is not tried a second time."),
    Move(_R.DELETION_INELIGIBLE, _R.OFFLINE, None, "As the move before."),
)

_PARTITIONS = {
    _P.NON_EXISTENT: "No Partition record, or a RemoveTopic record behind it.",
    _P.NEW: "Never.",
    _P.ONLINE: "It has a leader.",
    _P.OFFLINE: "Its leader is -1.",
}
_REPLICAS = {
    _R.NON_EXISTENT: "The broker is not among the replicas.",
    _R.NEW: "A reassignment adds it, and it is not in the ISR yet.",
    _R.ONLINE: "Its broker is unfenced, registered and has the directory.",
    _R.OFFLINE: "Its broker is fenced or unregistered, or the directory is offline.",
    _R.DELETION_STARTED: "Never.",
    _R.DELETION_SUCCESSFUL: "Never.",
    _R.DELETION_INELIGIBLE: "Never.",
}

_INTRODUCTION = """\
# Partition and replica states in quorum mode

The controller of the ZooKeeper designs moves every partition and every replica along two tables of
states, and writes and sends what each move needs. In quorum mode the metadata log holds what *is*:
a broker's registration, a partition's replicas, ISR and leader. There is no state to keep in step
with it. `quorumlab topics describe --states` shows for each partition and replica the state of the
ZooKeeper controller that comes nearest.

This page is made from `quorumlab/partition_states.py`:

```
python -c 'import quorumlab.partition_states as s; print(s.markdown(), end="")' > docs/states.md
```
"""


def markdown() -> str:
    """docs/states.md, the whole file."""
    return "\n".join(
        [
            _INTRODUCTION,
            *_section("Partitions", _PARTITIONS, PartitionState),
            "",
            *_section("Replicas", _REPLICAS, ReplicaState),
            "",
        ]
    )


def _section(title: str, shown: Mapping[Any, str], kind: type) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield "| state | shown when |"
    yield "|---|---|"
    for state, when in shown.items():
        yield f"| {state.value} | {when} |"
    yield ""
    yield "| from | to | records | when and why |"
    yield "|---|---|---|---|"
    for move in MOVES:
        if isinstance(move.before, kind):
            records = "none: quorum mode has no such move" if move.records is None else move.records
            yield f"| {move.before.value} | {move.after.value} | {records} | {move.story} |"
