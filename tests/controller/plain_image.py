"""A dumb twin of the metadata image: dicts of tuples, one record at a time. For tests only."""

from dataclasses import dataclass, field, replace
from uuid import UUID

from controller.metadata.changes import Change
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import PartitionState
from wire import metadata_records as records
from wire.partition_columns import NewPartitions, PartitionChanges


@dataclass(slots=True)
class PlainImage:
    topics: dict[UUID, str] = field(default_factory=dict)
    partitions: dict[tuple[UUID, int], PartitionState] = field(default_factory=dict)
    known: set[UUID] = field(default_factory=set)  # topics ever created: an id is used once

    def replay(self, change: Change) -> None:
        match change:
            case PartitionChanges() | NewPartitions():
                for record in change.records():
                    self.replay(record)
            case records.TopicRecord():
                self.topics[change.topic_id] = change.name
                self.known.add(change.topic_id)
            case records.RemoveTopicRecord():
                del self.topics[change.topic_id]
                for key in [key for key in self.partitions if key[0] == change.topic_id]:
                    del self.partitions[key]
            case records.PartitionRecord():
                self.partitions[change.topic_id, change.partition_id] = PartitionState(
                    replicas=change.replicas,
                    isr=change.isr,
                    leader=change.leader,
                    leader_epoch=change.leader_epoch,
                    partition_epoch=change.partition_epoch,
                    leader_recovery_state=change.leader_recovery_state,
                    adding_replicas=change.adding_replicas,
                    removing_replicas=change.removing_replicas,
                    directories=change.directories,
                    eligible_leader_replicas=change.eligible_leader_replicas or (),
                    last_known_elr=change.last_known_elr or (),
                )
            case records.PartitionChangeRecord():
                self._change(change)
            case records.NoOpRecord():
                pass
            case _:
                raise NotImplementedError(change)

    def _change(self, change: records.PartitionChangeRecord) -> None:
        key = (change.topic_id, change.partition_id)
        state = self.partitions[key]
        state = replace(state, partition_epoch=state.partition_epoch + 1)
        if change.leader != -2:
            state = replace(state, leader=change.leader, leader_epoch=state.leader_epoch + 1)
        if change.leader_recovery_state != -1:
            state = replace(state, leader_recovery_state=change.leader_recovery_state)
        for name in ("isr", "removing_replicas", "adding_replicas"):
            if getattr(change, name) is not None:
                state = replace(state, **{name: getattr(change, name)})
        for name in ("eligible_leader_replicas", "last_known_elr"):
            if getattr(change, name) is not None:
                state = replace(state, **{name: getattr(change, name)})
        if change.replicas is not None:
            directories = change.directories
            if directories is None:
                old = dict(zip(state.replicas, state.directories, strict=True))
                directories = tuple(old.get(r, UUID(int=0)) for r in change.replicas)
            state = replace(state, replicas=change.replicas, directories=directories)
        elif change.directories is not None:
            state = replace(state, directories=change.directories)
        self.partitions[key] = state


def plain_partitions(image: MetadataImage) -> dict[tuple[UUID, int], PartitionState]:
    return {
        (topic_id, index): state
        for topic_id in image.topics.by_id
        for index, state in image.partitions_of(topic_id)
    }
