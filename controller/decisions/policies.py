"""What elections go by: what image and configuration say of a topic's partitions.

Source: KIP-106 (unclean elections), KIP-966 (eligible leader replicas).
"""

from uuid import UUID

from controller.config import ControllerConfig
from controller.metadata import configs
from controller.metadata.election import Acceptable, Election, ElectionPolicy
from controller.metadata.image import MetadataImage, ResourceType

__all__ = [
    "election_for",
    "largest_min_isr",
    "policy_for",
    "without_broker",
]


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
