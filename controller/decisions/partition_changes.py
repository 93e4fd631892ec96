"""Changes of single partitions, by the election policy of their topic, one on top of another.

Source: KIP-106 (unclean elections), KIP-966 (eligible leader replicas).
"""

from uuid import UUID

from controller.config import ControllerConfig
from controller.metadata import configs, election
from controller.metadata.changes import Change
from controller.metadata.election import Acceptable, Desired, Election, ElectionPolicy
from controller.metadata.image import MetadataImage, ResourceType
from controller.metadata.partition_records import changed
from controller.metadata.partitions import PartitionState
from wire.metadata_records import PartitionChangeRecord

__all__ = [
    "PartitionEditor",
    "change_partition",
    "election_for",
    "largest_min_isr",
    "without_broker",
]


def change_partition(
    image: MetadataImage,
    config: ControllerConfig,
    place: tuple[UUID, int],
    state: PartitionState,
    desired: Desired,
    acceptable: Acceptable,
) -> PartitionChangeRecord | None:
    """The record that brings a partition to what is `desired`; None if nothing changes."""
    min_isr = 1
    if image.has_eligible_leaders:
        name = image.topics.by_id[place[0]].name
        min_isr = configs.min_insync_replicas(image, name, config.static_configs)
    policy = ElectionPolicy(
        acceptable=acceptable,
        metadata_version=image.metadata_version,
        elr_enabled=image.has_eligible_leaders,
        min_insync_replicas=min_isr,
    )
    return election.decide_change(*place, state, desired=desired, policy=policy)


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
        if record is None:
            return None
        self.changes.append(record)
        after = self._states[topic_id, index] = changed(state, record)
        return after
