"""The states of partitions and replicas, and which may follow which: seed 001's two tables.

A transition that the table does not have is a mistake of ours, and stops the process.

Source: seed 001, PartitionStateMachine and ReplicaStateMachine.
"""

from collections.abc import Hashable, Iterable, Mapping
from enum import Enum
from typing import Generic, TypeVar

__all__ = [
    "PARTITION_TRANSITIONS",
    "REPLICA_TRANSITIONS",
    "PartitionStage",
    "ReplicaStage",
    "Stages",
]


class PartitionStage(Enum):
    NON_EXISTENT = "NonExistentPartition"  # never was, or was deleted
    NEW = "NewPartition"  # has replicas, but no leader and ISR yet
    ONLINE = "OnlinePartition"  # has a leader
    OFFLINE = "OfflinePartition"  # its leader has died


class ReplicaStage(Enum):
    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"  # its broker is down, or has refused


_P, _R = PartitionStage, ReplicaStage

PARTITION_TRANSITIONS: Mapping[PartitionStage, tuple[PartitionStage, ...]] = {
    _P.NON_EXISTENT: (_P.NEW,),
    _P.NEW: (_P.ONLINE, _P.OFFLINE),
    _P.ONLINE: (_P.ONLINE, _P.OFFLINE),
    _P.OFFLINE: (_P.ONLINE, _P.OFFLINE, _P.NON_EXISTENT),
}
REPLICA_TRANSITIONS: Mapping[ReplicaStage, tuple[ReplicaStage, ...]] = {
    _R.NON_EXISTENT: (_R.NEW,),
    _R.NEW: (_R.ONLINE, _R.OFFLINE),
    _R.ONLINE: (_R.ONLINE, _R.OFFLINE),
    _R.OFFLINE: (_R.ONLINE, _R.OFFLINE, _R.DELETION_STARTED),
    _R.DELETION_STARTED: (_R.DELETION_SUCCESSFUL, _R.DELETION_INELIGIBLE),
    _R.DELETION_SUCCESSFUL: (_R.NON_EXISTENT,),
    _R.DELETION_INELIGIBLE: (_R.ONLINE, _R.OFFLINE),
}

_Key = TypeVar("_Key", bound=Hashable)
_Stage = TypeVar("_Stage", bound=Enum)


class Stages(Generic[_Key, _Stage]):
    """The stage of everything of one kind; what is not listed does not exist."""

    def __init__(self, nothing: _Stage, transitions: Mapping[_Stage, tuple[_Stage, ...]]) -> None:
        self._nothing = nothing
        self._transitions = transitions
        self._stages: dict[_Key, _Stage] = {}

    def of(self, key: _Key) -> _Stage:
        return self._stages.get(key, self._nothing)

    def begin(self, key: _Key, stage: _Stage) -> None:
        """As a new controller finds it."""
        self._stages[key] = stage

    def become(self, key: _Key, *stages: _Stage) -> None:
        """Go through `stages`, each of which must be allowed after the one before it."""
        for stage in stages:
            before = self.of(key)
            assert stage in self._transitions[before], (key, before, stage)
            if stage is self._nothing:
                self._stages.pop(key, None)
            else:
                self._stages[key] = stage

    def among(self, keys: Iterable[_Key], *stages: _Stage) -> list[_Key]:
        """The keys that are in one of `stages`."""
        return [key for key in keys if self.of(key) in stages]
