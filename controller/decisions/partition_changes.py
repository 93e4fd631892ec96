"""Changes of single partitions, by the election policy of their topic.

A broker that fails may leave thousands of partitions without a leader. Most of them are alike, and
`changes_of_rows` decides alike ones once. A `PartitionEditor` puts one change on top of another.

Source: KIP-106 (unclean elections), KIP-966 (eligible leader replicas).
"""

from collections.abc import Callable, Iterator
from dataclasses import fields
from operator import attrgetter
from uuid import UUID

from controller.config import ControllerConfig
from controller.metadata import configs, election
from controller.metadata.changes import Change
from controller.metadata.election import Acceptable, Desired, Election, ElectionPolicy
from controller.metadata.image import MetadataImage, ResourceType
from controller.metadata.partition_records import changed
from controller.metadata.partitions import PartitionState, Rows
from wire.message import replace
from wire.metadata_records import PartitionChangeRecord

__all__ = [
    "PartitionEditor",
    "change_partition",
    "changes_of_rows",
    "election_for",
    "largest_min_isr",
    "without_broker",
]

# All that a change depends on: the log counts the epochs by itself.
_EPOCHS = ("leader_epoch", "partition_epoch")
_without_epochs = attrgetter(*(f.name for f in fields(PartitionState) if f.name not in _EPOCHS))


def change_partition(
    image: MetadataImage,
    config: ControllerConfig,
    place: tuple[UUID, int],
    state: PartitionState,
    desired: Desired,
    acceptable: Acceptable,
) -> PartitionChangeRecord | None:
    """The record that brings a partition to what is `desired`; None if nothing changes."""
    policy = _policy(image, config, place[0], acceptable)
    return election.decide_change(*place, state, desired=desired, policy=policy)


def changes_of_rows(
    image: MetadataImage,
    config: ControllerConfig,
    rows: Rows,
    desire: Callable[[Election, PartitionState], Desired],
    acceptable: Acceptable,
) -> Iterator[PartitionChangeRecord]:
    """The records that bring the partitions of `rows` to what `desire` says of each.

    It is told which election the topic allows, and must say the same of partitions that differ in
    their epochs only.
    """
    topics: dict[UUID, tuple[ElectionPolicy, Election]] = {}
    decided: dict[tuple[object, ...], PartitionChangeRecord | None] = {}
    for topic_id, index, state in image.partitions.partitions(rows):
        if topic_id not in topics:
            policy = _policy(image, config, topic_id, acceptable)
            topics[topic_id] = policy, election_for(image, topic_id, config)
        policy, how = topics[topic_id]
        alike = (policy.min_insync_replicas, how, *_without_epochs(state))
        if alike not in decided:
            desired = desire(how, state)
            decided[alike] = election.decide_change(
                topic_id, index, state, desired=desired, policy=policy
            )
        record = decided[alike]
        if record is not None:
            yield replace(record, topic_id=topic_id, partition_id=index)


def _policy(
    image: MetadataImage, config: ControllerConfig, topic_id: UUID, acceptable: Acceptable
) -> ElectionPolicy:
    min_isr = 1
    if image.has_eligible_leaders:
        name = image.topics.by_id[topic_id].name
        min_isr = configs.min_insync_replicas(image, name, config.static_configs)
    return ElectionPolicy(
        acceptable=acceptable,
        metadata_version=image.metadata_version,
        elr_enabled=image.has_eligible_leaders,
        min_insync_replicas=min_isr,
    )


def largest_min_isr(image: MetadataImage, config: ControllerConfig) -> int:
    """The largest min.insync.replicas of any topic, found without asking each of them."""
    default = configs.min_insync_replicas(image, configs.NO_TOPIC, config.static_configs)
    own = (
        int(values[configs.MIN_ISR])
        for (resource_type, _), values in image.configs.items()
        if resource_type == ResourceType.TOPIC and configs.MIN_ISR in values
    )
    return max(default, max(own, default=1))


def election_for(image: MetadataImage, topic_id: UUID, config: ControllerConfig) -> Election:
    """How a leader may be found for a partition of this topic."""
    name = image.topics.by_id[topic_id].name
    allowed = configs.unclean_election_enabled(image, name, config.static_configs)
    return Election.UNCLEAN if allowed else Election.ONLINE


def without_broker(image: MetadataImage, gone: int) -> Acceptable:
    """As the image has it, but the broker `gone` cannot lead."""

    def is_acceptable(broker_id: int, directory: UUID) -> bool:
        return broker_id != gone and image.is_acceptable(broker_id, directory)

    return is_acceptable


class PartitionEditor:
    """The partition changes of one decision, one after another.

    A request may name a partition twice: its second change rests on the first one.
    """

    def __init__(self, image: MetadataImage, config: ControllerConfig) -> None:
        self.changes: list[Change] = []
        self.image = image
        self.config = config
        self._states: dict[tuple[UUID, int], PartitionState] = {}  # of changed partitions

    def state(self, topic_id: UUID, index: int) -> PartitionState | None:
        """The state of a partition after the changes so far; None if there is no such partition."""
        return self._states.get((topic_id, index)) or self.image.partition(topic_id, index)

    def change(self, topic_id: UUID, index: int, desired: Desired) -> PartitionState | None:
        """Bring a known partition to what is desired; None if that changes nothing."""
        state = self.state(topic_id, index)
        assert state is not None, (topic_id, index)
        record = change_partition(
            self.image, self.config, (topic_id, index), state, desired, self.image.is_acceptable
        )
        return None if record is None else self._changed(state, record)

    def confirm(self, topic_id: UUID, index: int) -> PartitionState:
        """Record the ISR of a known partition as it is: that raises the partition's epoch."""
        state = self.state(topic_id, index)
        assert state is not None, (topic_id, index)
        record = PartitionChangeRecord(topic_id=topic_id, partition_id=index, isr=state.isr)
        return self._changed(state, record)

    def _changed(self, state: PartitionState, record: PartitionChangeRecord) -> PartitionState:
        self.changes.append(record)
        after = self._states[record.topic_id, record.partition_id] = changed(state, record)
        return after
