"""Rules write changes into a draft of a group. The group itself stays as it is until they count."""

from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.consumer_values import (
    ConsumerChange,
    Current,
    CurrentChange,
    EpochChange,
    SubscriptionChange,
    Target,
    TargetChange,
)

__all__ = ["Draft"]


class Draft:
    """`group` is what it would be after the `changes`."""

    __slots__ = ("_before", "changes", "group", "is_matching")

    def __init__(self, group: ConsumerGroup) -> None:
        self._before = group
        self.group = group
        self.changes: list[ConsumerChange] = []
        self.is_matching = False  # patterns of it, still

    def write(self, change: ConsumerChange) -> None:
        if self.group is self._before:
            self.group = self._before.copy()
        self.group.apply(change)
        self.changes.append(change)

    def raise_epoch(self, metadata_hash: int) -> None:
        group = self.group
        self.write(
            EpochChange(group_id=group.id, epoch=group.epoch + 1, metadata_hash=metadata_hash)
        )

    def set_target(self, member_id: str, partitions: Target | None) -> None:
        self.write(TargetChange(group_id=self.group.id, member_id=member_id, partitions=partitions))

    def set_current(self, member_id: str, current: Current | None) -> None:
        self.write(CurrentChange(group_id=self.group.id, member_id=member_id, current=current))

    def remove(self, member_id: str) -> None:
        """In Kafka's order."""
        self.set_current(member_id, None)
        self.set_target(member_id, None)
        self.write(
            SubscriptionChange(group_id=self.group.id, member_id=member_id, subscription=None)
        )
