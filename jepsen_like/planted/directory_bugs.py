"""Planted bugs of data directories that fail: where replicas lie, and who knows (KIP-858)."""

from uuid import UUID

from broker.log_dirs import LogDirs
from broker.partition.partition import Offline
from broker.replicas import Replicas
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import PartitionState
from jepsen_like.planted.planting import plant_in
from wire.primitives import DIRECTORY_UNASSIGNED

_place = LogDirs.place
_obey = Replicas.obey


@plant_in("directory", LogDirs, "place", seeds_max=30, found_at=20)
def creates_anew_what_is_offline(self: LogDirs, log: str, assigned: UUID) -> UUID | None:
    """Breaks: a replica is not created anew while its directory is offline (KIP-112)."""
    chosen = _place(self, log, assigned)
    if chosen is None:
        self.removed(log)
        chosen = _place(self, log, DIRECTORY_UNASSIGNED)
    return chosen


# Found in the shipped broker, when directories began to fail here.


@plant_in("directory", Replicas, "obey", seeds_max=30, found_at=13)
def says_that_what_is_offline_lies_nowhere(
    self: Replicas, name: str, topic_id: UUID, index: int, state: PartitionState, now_ms: int
) -> None:
    """Breaks: a replica that is offline stays in the directory that the metadata names
    (KIP-858)."""
    _obey(self, name, topic_id, index, state, now_ms)
    for partition in self:
        if partition.topic_id == topic_id and isinstance(partition.role, Offline):
            partition.directory_id = DIRECTORY_UNASSIGNED


@plant_in("directory", MetadataImage, "is_acceptable", seeds_max=30, found_at=0)
def elects_into_a_failed_directory(self: MetadataImage, broker_id: int, directory: UUID) -> bool:
    """Breaks: a replica in a failed directory is not elected (KIP-858)."""
    return self.is_active(broker_id)
