"""Planted bugs of data directories that fail: where replicas lie, and who knows (KIP-858)."""

from typing import Any
from uuid import UUID

from broker.log_dirs import LogDirs
from broker.membership.assignments import Assignments
from broker.partition.partition import Offline
from broker.replicas import Replicas
from controller.decisions import failover
from controller.metadata.changes import Change
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import PartitionState
from jepsen_like.planted.planting import Plants, plant_in
from wire.primitives import DIRECTORY_UNASSIGNED

__all__ = ["DIRECTORY_PLANTS"]

DIRECTORY_PLANTS: Plants = {}

# What a plant calls of the rule that it replaces.
_place = LogDirs.place
_obey = Replicas.obey


@plant_in(DIRECTORY_PLANTS, LogDirs, "place", seeds_max=30, found_at=9)
def creates_anew_what_is_offline(self: LogDirs, log: str, assigned: UUID) -> UUID | None:
    """Breaks: a replica is not created anew while its directory is offline (KIP-112)."""
    chosen = _place(self, log, assigned)
    if chosen is None:
        self.removed(log)
        chosen = _place(self, log, DIRECTORY_UNASSIGNED)
    return chosen


# Found in the shipped broker, when directories began to fail here.


@plant_in(DIRECTORY_PLANTS, Replicas, "obey", seeds_max=30, found_at=9)
def says_that_what_is_offline_lies_nowhere(
    self: Replicas, name: str, topic_id: UUID, index: int, state: PartitionState, now_ms: int
) -> None:
    """Breaks: a replica that is offline stays in the directory that the metadata names
    (KIP-858)."""
    _obey(self, name, topic_id, index, state, now_ms)
    for partition in self:
        if partition.topic_id == topic_id and isinstance(partition.role, Offline):
            partition.directory_id = DIRECTORY_UNASSIGNED


@plant_in(DIRECTORY_PLANTS, LogDirs, "failed", seeds_max=10, found_at=0)
def reports_no_failed_directory(self: LogDirs) -> tuple[UUID, ...]:
    """Breaks: a broker reports with its heartbeats which directories have failed (KIP-858)."""
    return ()


@plant_in(DIRECTORY_PLANTS, Assignments, "want", seeds_max=10, found_at=0)
def does_not_say_where_replicas_lie(
    self: Assignments, topic_id: UUID, index: int, directory_id: UUID
) -> None:
    """Breaks: the controller is told in which directory a replica lies (AssignReplicasToDirs)."""


@plant_in(DIRECTORY_PLANTS, failover, "leave_directories", seeds_max=10, found_at=0)
def leaves_them_in_sync_where_a_directory_failed(*args: Any) -> tuple[Change, ...]:
    """Breaks: replicas in a failed directory leave the ISR (KIP-858)."""
    return ()


@plant_in(DIRECTORY_PLANTS, MetadataImage, "is_acceptable", seeds_max=30, found_at=0)
def elects_into_a_failed_directory(self: MetadataImage, broker_id: int, directory: UUID) -> bool:
    """Breaks: a replica in a failed directory is not elected (KIP-858)."""
    return self.is_active(broker_id)
