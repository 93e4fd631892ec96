"""Changes of partitions that one request asks for, one after another.

A request may name a partition twice: what it asks for second rests on what it got first.
"""

from uuid import UUID

from controller.config import ControllerConfig
from controller.decisions import policies
from controller.metadata import election
from controller.metadata.changes import Change
from controller.metadata.election import Acceptable, Wish
from controller.metadata.image import MetadataImage
from controller.metadata.partition_records import changed
from controller.metadata.partitions import PartitionState

__all__ = ["Edits"]


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
        policy = policies.policy_for(
            self._image, topic_id, self._config, acceptable or self._image.is_acceptable
        )
        record = election.decide_change(topic_id, index, state, wish=wish, policy=policy)
        if record is None:
            return None
        self.changes.append(record)
        after = self._states[topic_id, index] = changed(state, record)
        return after
