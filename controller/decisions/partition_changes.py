"""What elections go by: what image and configuration say of a topic's partitions.

Source: KIP-106 (unclean elections), KIP-966 (eligible leader replicas).

Changes of partitions that one request asks for, one after another.

A request may name a partition twice: what it asks for second rests on what it got first.
"""

from uuid import UUID

from controller.config import ControllerConfig
from controller.metadata import configs, election
from controller.metadata.changes import Change
from controller.metadata.election import Acceptable, Election, ElectionPolicy, Wish
from controller.metadata.image import MetadataImage, ResourceType
from controller.metadata.partition_records import changed
from controller.metadata.partitions import PartitionState

__all__ = ["Edits", "election_for", "largest_min_isr", "policy_for", "without_broker"]


def policy_for(
    image: MetadataImage, topic_id: UUID, config: ControllerConfig, acceptable: Acceptable
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
    """The largest min.insync.replicas of any topic, without asking each of them."""
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
    """As the image has it, but for one broker that cannot lead."""

    def is_acceptable(broker_id: int, directory: UUID) -> bool:
        return broker_id != gone and image.is_acceptable(broker_id, directory)

    return is_acceptable


class Edits:
    """The changes so far. Made for one decision, and gone with it."""

    def __init__(self, image: MetadataImage, config: ControllerConfig) -> None:
        self.changes: list[Change] = []
        self._image = image
        self._config = config
        self._states: dict[tuple[UUID, int], PartitionState] = {}  # of changed partitions

    def state(self, topic_id: UUID, index: int) -> PartitionState | None:
        """A partition as it is by now; None if there is none."""
        return self._states.get((topic_id, index)) or self._image.partition(topic_id, index)

    def change(
        self, topic_id: UUID, index: int, wish: Wish, acceptable: Acceptable | None = None
    ) -> PartitionState | None:
        """Bring a known partition to what is wished for; None if that changes nothing."""
        state = self.state(topic_id, index)
        assert state is not None, (topic_id, index)
        policy = policy_for(
            self._image, topic_id, self._config, acceptable or self._image.is_acceptable
        )
        record = election.decide_change(topic_id, index, state, wish=wish, policy=policy)
        if record is None:
            return None
        self.changes.append(record)
        after = self._states[topic_id, index] = changed(state, record)
        return after
