"""A heartbeat says what a member wants and has, and is answered with its epoch and its assignment.

All that follows is written down with it: a new epoch of the group if somebody wants other topics
than before or these have changed, a new target assignment for that epoch, and the member's next
step towards it. The rules are pure: they return a draft of the group, and what to answer.

Source: KIP-848; Kafka's GroupMetadataManager, consumerGroupHeartbeat and consumerGroupLeave.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from broker.config import GroupConfig
from broker.groups.consumer.assignors import ASSIGNORS, Subscriber
from broker.groups.consumer.consumer_group import ConsumerGroup, ConsumerMember
from broker.groups.consumer.consumer_values import (
    JOINS,
    LEAVES_FOR_A_WHILE,
    ClassicSide,
    Current,
    MemberState,
    PatternChange,
    Resolved,
    Subscription,
    SubscriptionChange,
    TargetEpochChange,
    TopicPartition,
)
from broker.groups.consumer.drafts import Draft
from broker.groups.consumer.heartbeat_checks import (
    Refusal,
    epoch_refusal,
    member_of,
    room_refusal,
    static_refusal,
)
from broker.groups.consumer.reconciling import next_step
from broker.groups.consumer.topics import Topics, existing, metadata_hash
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest

__all__ = [
    "Beat",
    "Beaten",
    "Given",
    "come_back",
    "fence",
    "follow",
    "follow_patterns",
    "heartbeat",
    "leave",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A heartbeat, and who sends it."""

    request: ConsumerGroupHeartbeatRequest
    member_id: str  # its own, or the one that it is given
    client_id: str
    client_host: str

    @property
    def owned(self) -> frozenset[TopicPartition] | None:
        topics = self.request.topic_partitions
        if topics is None:
            return None
        return frozenset((each.topic_id, index) for each in topics for index in each.partitions)

    @property
    def is_full(self) -> bool:
        """It says all that there is to say, as if it knew nothing of its own assignment."""
        said = self.request
        names_topics = said.subscribed_topic_names, said.subscribed_topic_regex
        return said.member_epoch == JOINS or (
            said.rebalance_timeout_ms != -1
            and names_topics != (None, None)
            and said.topic_partitions is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What is so when a request arrives."""

    topics: Topics
    config: GroupConfig
    assignment_interval_ms: int = 0  # at least, from one assignment of the group to the next
    is_stale: bool = False  # topics have come, gone or grown since the group looked at them
    now_ms: int


@dataclass(frozen=True, slots=True)
class Beaten:
    draft: Draft
    member_id: str
    tells_assignment: bool = False


def heartbeat(group: ConsumerGroup, beat: Beat, given: Given) -> Beaten | Refusal:
    refusal = room_refusal(group, beat.member_id, given.config)
    if refusal is not None:
        return refusal
    draft = Draft(group)
    member = _sender(draft, beat)
    if isinstance(member, Refusal):
        return member
    subscription = _subscription(member.subscription, beat)
    refusal = follow(draft, member, subscription, None, beat.owned, given)
    if refusal is not None:
        return refusal
    has_changed = (
        draft.group.members[member.id].current.assigned.keys() != member.current.assigned.keys()
    )
    return Beaten(draft, member.id, beat.is_full or has_changed)


def follow(
    draft: Draft,
    member: ConsumerMember,
    subscription: Subscription,
    classic: ClassicSide | None,
    owned: frozenset[TopicPartition] | None,
    given: Given,
) -> Refusal | None:
    """What follows from what a member says, which may be new in the group."""
    is_new = member.id not in draft.group.members
    has_said = is_new or (subscription, classic) != (member.subscription, member.classic)
    if has_said:
        draft.write(
            SubscriptionChange(
                group_id=draft.group.id,
                member_id=member.id,
                subscription=subscription,
                classic=classic,
            )
        )
    if has_said or given.is_stale:
        wanted_before = draft.group.topics_of(member)
        is_changed = _match_patterns(draft, given) or is_new
        wanted = draft.group.topics_of(draft.group.members[member.id])
        _follow_topics(draft, given, is_changed=is_changed or wanted != wanted_before)
    if _is_assignment_due(draft.group, given):
        _assign(draft, given)
    return _reconcile(draft, member.id, owned, given)


# --- who ------------------------------------------------------------------------------------


def _sender(draft: Draft, beat: Beat) -> ConsumerMember | Refusal:
    request = beat.request
    if request.member_epoch != JOINS:
        member = member_of(draft.group, beat.member_id, request.instance_id)
        if isinstance(member, Refusal):
            return member
        return epoch_refusal(member, request.member_epoch, beat.owned) or member
    if request.instance_id is not None:
        before = draft.group.static_member(request.instance_id)
        if before is not None:
            return static_refusal(beat.member_id, before) or come_back(
                draft, before, beat.member_id
            )
    return draft.group.members.get(beat.member_id) or ConsumerMember(id=beat.member_id)


def come_back(draft: Draft, before: ConsumerMember, member_id: str) -> ConsumerMember:
    """A static member is back, perhaps under another id: it gets what it had."""
    target = draft.group.target(before.id)
    draft.remove(before.id)
    draft.write(
        SubscriptionChange(
            group_id=draft.group.id,
            member_id=member_id,
            subscription=before.subscription,
            classic=before.classic,
        )
    )
    draft.set_target(member_id, target)
    current = Current(
        state=before.current.state,
        assigned=before.current.assigned,
        revoking=before.current.revoking,
    )
    draft.set_current(member_id, current)
    return draft.group.members[member_id]


def _subscription(before: Subscription, beat: Beat) -> Subscription:
    said = beat.request
    names, pattern = said.subscribed_topic_names, said.subscribed_topic_regex
    timeout_ms = said.rebalance_timeout_ms
    return replace(
        before,
        instance_id=before.instance_id if said.instance_id is None else said.instance_id,
        rack_id=before.rack_id if said.rack_id is None else said.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        topic_names=before.topic_names if names is None else tuple(sorted(set(names))),
        topic_pattern=before.topic_pattern if pattern is None else pattern,
        rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        assignor=before.assignor if said.server_assignor is None else said.server_assignor,
    )


# --- what -----------------------------------------------------------------------------------


def follow_patterns(group: ConsumerGroup, given: Given) -> Draft:
    """More of the topics may have been matched since a member was answered."""
    draft = Draft(group)
    _follow_topics(draft, given, is_changed=_match_patterns(draft, given))
    return draft


def _match_patterns(draft: Draft, given: Given) -> bool:
    """Do patterns match other topics than before? It may take time: then the group is looked at
    again, and members that are answered until then get what the patterns matched before."""
    group = draft.group
    has_changed = False
    asked = {one.subscription.topic_pattern for one in group.members.values()}
    used = sorted(pattern for pattern in asked if pattern)
    for pattern in used:
        known = group.patterns.get(pattern)
        if known is not None and not given.is_stale:
            continue
        found = given.topics.matching(pattern, given.now_ms)
        if found is None:
            draft.is_matching = True
        elif known is None or found != known.topics:
            has_changed = has_changed or found != (() if known is None else known.topics)
            now = Resolved(topics=found, version=given.topics.version, timestamp_ms=given.now_ms)
            draft.write(PatternChange(group_id=group.id, pattern=pattern, resolved=now))
    for pattern in sorted(group.patterns.keys() - set(used)):
        draft.write(PatternChange(group_id=group.id, pattern=pattern, resolved=None))
    return has_changed


def _follow_topics(draft: Draft, given: Given, *, is_changed: bool) -> None:
    """The group's epoch is raised if a member wants other topics, or if these are others."""
    if not is_changed and not given.is_stale:
        return
    hash_ = metadata_hash(draft.group.subscribed_topics(), given.topics)
    if is_changed or hash_ != draft.group.metadata_hash:
        draft.raise_epoch(hash_)


def _is_assignment_due(group: ConsumerGroup, given: Given) -> bool:
    """Many join at once: they wait for one assignment, that would take as long for each of them.
    The time of the last may lie ahead, by another broker's clock: nobody waits for that."""
    if group.epoch <= group.assignment_epoch:
        return False
    since_ms = given.now_ms - group.assignment_ms
    return not 0 <= since_ms < given.assignment_interval_ms


def _assign(draft: Draft, given: Given) -> None:
    group, topics = draft.group, given.topics
    wanted: dict[frozenset[str], frozenset[UUID]] = {}  # mostly, all want the same
    members = {}
    for member in group.members.values():
        names = group.topics_of(member)
        if names not in wanted:
            wanted[names] = frozenset(existing(names, topics))
        members[member.id] = Subscriber(
            instance_id=member.instance_id,
            topics=wanted[names],
            target=group.target(member.id),
        )
    default = ASSIGNORS[given.config.consumer_assignors[0]]
    assign = ASSIGNORS.get(group.preferred_assignor() or "", default)  # or it is a Kafka plugin
    targets = assign(members, existing(group.subscribed_topics(), topics))
    for member_id, target in targets.items():
        if target != group.targets.get(member_id):
            draft.set_target(member_id, target)
    draft.write(TargetEpochChange(group_id=group.id, epoch=group.epoch, timestamp_ms=given.now_ms))


def _reconcile(
    draft: Draft, member_id: str, owned: frozenset[TopicPartition] | None, given: Given
) -> Refusal | None:
    group = draft.group
    member = group.members[member_id]
    now = next_step(
        member_id,
        member.current,
        target=group.target(member_id),
        epoch=group.assignment_epoch,
        owners=group.owners,
        owned=owned,
        unwanted=_unwanted(group, member, given),
    )
    if isinstance(now, ErrorCode):
        text = "The consumer group member is in a unknown state. The member must abandon all its"
        return Refusal(now, f"{text} partitions and rejoin.")
    if now != member.current:
        draft.set_current(member_id, now)
    return None


def _unwanted(
    group: ConsumerGroup, member: ConsumerMember, given: Given
) -> frozenset[TopicPartition]:
    """It may have partitions of topics that it has left, until there is another target and until
    it has given back what it was told to."""
    is_revoking = member.current.state is MemberState.UNREVOKED_PARTITIONS
    if group.epoch == group.assignment_epoch and not is_revoking:
        return frozenset()
    wanted = existing(group.topics_of(member), given.topics)
    known = group.target(member.id).union(member.current.assigned)
    return frozenset((topic_id, index) for topic_id, index in known if topic_id not in wanted)


# --- going ----------------------------------------------------------------------------------


def leave(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, given: Given
) -> Beaten | Refusal:
    member = member_of(group, request.member_id, request.instance_id)
    if isinstance(member, Refusal):
        return member
    if request.member_epoch != LEAVES_FOR_A_WHILE:
        return Beaten(fence(group, (member.id,), given), member.id)
    draft = Draft(group)
    current = Current(
        epoch=LEAVES_FOR_A_WHILE,
        previous_epoch=member.current.previous_epoch,
        state=member.current.state,
        assigned=dict.fromkeys(member.current.assigned, 0),
    )
    draft.set_current(member.id, current)
    return Beaten(draft, member.id)


def fence(group: ConsumerGroup, member_ids: Iterable[str], given: Given) -> Draft:
    """They have gone, or are taken to be gone. The others hear of it with their heartbeats."""
    draft = Draft(group)
    for member_id in member_ids:
        draft.remove(member_id)
    _match_patterns(draft, given)
    draft.raise_epoch(metadata_hash(draft.group.subscribed_topics(), given.topics))
    return draft
