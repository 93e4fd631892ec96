"""A group of the consumer protocol: members, three kinds of epochs, and who has what.

    group epoch        raised when somebody joins, leaves or wants other topics, or these change
    assignment epoch   the group epoch for which the target assignment was worked out
    member epoch       the assignment epoch that the member has reached

A group is what its records say. Rules change a draft of it (drafts.py), record by record; nothing
else does. No two members have one instance id.

Source: KIP-848; Kafka's ConsumerGroup, ModernGroup and GroupMetadataManager.replay.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import assert_never

from broker.groups.consumer.consumer_values import (
    ClassicSide,
    ConsumerChange,
    Current,
    CurrentChange,
    EpochChange,
    MemberState,
    PatternChange,
    Resolved,
    Subscription,
    SubscriptionChange,
    Target,
    TargetChange,
    TargetEpochChange,
    TopicPartition,
)

__all__ = ["ConsumerGroup", "ConsumerGroupState", "ConsumerMember"]

_NOTHING: Target = frozenset()


class ConsumerGroupState(Enum):
    """The names are those that Kafka's tools show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    id: str
    subscription: Subscription = field(default_factory=Subscription)
    classic: ClassicSide | None = None  # None: it speaks the consumer protocol
    current: Current = field(default_factory=Current)

    @property
    def epoch(self) -> int:
        return self.current.epoch

    @property
    def instance_id(self) -> str | None:
        return self.subscription.instance_id

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.current.state is MemberState.STABLE and self.epoch == epoch


@dataclass(slots=True, kw_only=True, eq=False)
class ConsumerGroup:
    id: str
    epoch: int = 0
    metadata_hash: int = 0
    assignment_epoch: int = 0
    assignment_ms: int = 0  # when it was worked out; 0: not known
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)  # by member
    patterns: dict[str, Resolved] = field(default_factory=dict)
    owners: dict[TopicPartition, str] = field(default_factory=dict)  # has it, or gives it back
    static_ids: dict[str, str] = field(default_factory=dict)  # member ids, by instance id

    # --- facts ------------------------------------------------------------------------------

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        settled = (one.is_reconciled_to(self.assignment_epoch) for one in self.members.values())
        return ConsumerGroupState.STABLE if all(settled) else ConsumerGroupState.RECONCILING

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_ids.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target(self, member_id: str) -> Target:
        return self.targets.get(member_id, _NOTHING)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """What it wants, by name and by pattern."""
        names = frozenset(member.subscription.topic_names)
        pattern = member.subscription.topic_pattern
        found = self.patterns.get(pattern) if pattern else None
        return names if found is None else names.union(found.topics)

    def subscribed_topics(self) -> frozenset[str]:
        said = (one.subscription for one in self.members.values())
        asked = {(each.topic_names, each.topic_pattern) for each in said}  # mostly, all alike
        found = (self.patterns.get(pattern) for _, pattern in asked if pattern)
        matched = (each.topics for each in found if each is not None)
        return frozenset[str]().union(*(names for names, _ in asked), *matched)

    def preferred_assignor(self) -> str | None:
        """The one that most members ask for; of two, the one that was asked for first."""
        asked = Counter(one.subscription.assignor for one in self.members.values())
        asked.pop(None, None)
        return asked.most_common(1)[0][0] if asked else None

    # --- changes ----------------------------------------------------------------------------

    def copy(self) -> "ConsumerGroup":
        return ConsumerGroup(
            id=self.id,
            epoch=self.epoch,
            metadata_hash=self.metadata_hash,
            assignment_epoch=self.assignment_epoch,
            assignment_ms=self.assignment_ms,
            members=dict(self.members),
            targets=dict(self.targets),
            patterns=dict(self.patterns),
            owners=dict(self.owners),
            static_ids=dict(self.static_ids),
        )

    def apply(self, change: ConsumerChange) -> None:
        """In whatever order a compacted log has kept the last records of their keys."""
        match change:
            case EpochChange(epoch=epoch):
                self.epoch, self.metadata_hash = epoch or 0, change.metadata_hash
            case TargetEpochChange(epoch=epoch):
                self.assignment_epoch, self.assignment_ms = epoch or 0, change.timestamp_ms
            case SubscriptionChange(subscription=None):
                self._remove(change.member_id)
            case SubscriptionChange(subscription=subscription):
                assert subscription is not None
                self._subscribe(change.member_id, subscription, change.classic)
            case TargetChange(partitions=None):
                self.targets.pop(change.member_id, None)
            case TargetChange(partitions=partitions):
                assert partitions is not None
                self.targets[change.member_id] = partitions
            case CurrentChange():
                self._reassign(change.member_id, change.current)
            case PatternChange(resolved=None):
                self.patterns.pop(change.pattern, None)
            case PatternChange(resolved=resolved):
                assert resolved is not None
                self.patterns[change.pattern] = resolved
            case _:
                assert_never(change)

    def _subscribe(
        self, member_id: str, subscription: Subscription, classic: ClassicSide | None
    ) -> None:
        member = self.members.get(member_id) or ConsumerMember(id=member_id)
        self._forget_instance(member)
        self.members[member_id] = replace(member, subscription=subscription, classic=classic)
        if subscription.instance_id is not None:
            self.static_ids[subscription.instance_id] = member_id

    def _reassign(self, member_id: str, current: Current | None) -> None:
        member = self.members.get(member_id)
        if member is None and current is None:
            return
        member = member or ConsumerMember(id=member_id)
        self._release(member)
        now = Current() if current is None else current
        self.members[member_id] = replace(member, current=now)
        for partition in (*now.assigned, *now.revoking):
            self.owners[partition] = member_id

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._release(member)
        self._forget_instance(member)

    def _forget_instance(self, member: ConsumerMember) -> None:
        instance_id = member.instance_id
        if instance_id is not None and self.static_ids.get(instance_id) == member.id:
            del self.static_ids[instance_id]

    def _release(self, member: ConsumerMember) -> None:
        for partition in (*member.current.assigned, *member.current.revoking):
            if self.owners.get(partition) == member.id:
                del self.owners[partition]
