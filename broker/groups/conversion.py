"""A group goes from one protocol to the other while members of both are in it.

The first member of the consumer protocol takes a classic group along; the last one that leaves lets
it go back. What each member has stays with it. The rules are pure.

Source: KIP-848; Kafka's ConsumerGroup.fromClassicGroup, ClassicGroup.fromConsumerGroup, and
ConsumerGroupMigrationPolicy.
"""

from broker.config import GroupConfig
from broker.groups import protocols
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.consumer_values import (
    ClassicProtocol,
    ClassicSide,
    Current,
    EpochChange,
    Subscription,
    SubscriptionChange,
    TargetEpochChange,
)
from broker.groups.consumer.drafts import Draft
from broker.groups.consumer.heartbeat_checks import Refusal
from broker.groups.consumer.topics import Topics, metadata_hash
from broker.groups.embedded import Embedded, read_assignment, read_subscription, write_assignment
from broker.groups.group import Group, Member
from broker.groups.mixed import id_places, of_member
from broker.groups.records import GroupMetadata, MemberMetadata
from wire.errors import ErrorCode

__all__ = ["MIGRATION_POLICIES", "downgraded", "is_downgradable", "upgrade_refusal", "upgraded"]

MIGRATION_POLICIES = ("disabled", "upgrade", "downgrade", "bidirectional")
_UPGRADING, _DOWNGRADING = ("upgrade", "bidirectional"), ("downgrade", "bidirectional")


def upgrade_refusal(group: Group, config: GroupConfig) -> Refusal | None:
    why = None
    if config.consumer_migration_policy not in _UPGRADING:
        why = "online upgrade is disabled"
    elif not group.is_consumers or any(_said(each) is None for each in group.members.values()):
        why = "the group does not use the consumer embedded protocol"
    elif len(group.members) > config.consumer_max_size:
        why = "the group size exceeds the consumer group maximum size"
    if why is None:
        return None
    text = f"Cannot upgrade classic group {group.id} to consumer group because {why}."
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, text)


def _said(member: Member) -> Embedded | None:
    return read_subscription(member.protocols[0].metadata)


def upgraded(group: Group, topics: Topics) -> Draft:
    """Its generation is the epoch of all: nobody has to join again for that."""
    draft = Draft(ConsumerGroup(id=group.id))
    for member in group.members.values():
        said = _said(member)
        assert said is not None, member.id
        draft.write(
            SubscriptionChange(
                group_id=group.id,
                member_id=member.id,
                subscription=Subscription(
                    instance_id=member.instance_id,
                    rack_id=said.rack_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    topic_names=tuple(sorted(set(said.topics))),
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                ),
                classic=_side(member),
            )
        )
    hash_ = metadata_hash(draft.group.subscribed_topics(), topics)
    generation = group.generation
    draft.write(EpochChange(group_id=group.id, epoch=generation, metadata_hash=hash_))
    taken: set[object] = set()  # a leader of the group may have given one to two
    for member in group.members.values():
        share = id_places(read_assignment(member.assignment) or (), topics).difference(taken)
        taken |= share
        draft.set_target(member.id, share)
        current = Current(
            epoch=generation, previous_epoch=generation, assigned=dict.fromkeys(share, generation)
        )
        draft.set_current(member.id, current)
    draft.write(TargetEpochChange(group_id=group.id, epoch=generation))
    return draft


def _side(member: Member) -> ClassicSide:
    return ClassicSide(
        session_timeout_ms=member.session_timeout_ms,
        protocols=tuple(
            ClassicProtocol(name=each.name, metadata=each.metadata) for each in member.protocols
        ),
    )


def is_downgradable(group: ConsumerGroup, config: GroupConfig) -> bool:
    """Are there members, all of the classic protocol?"""
    sides = [member.classic for member in group.members.values()]
    has_room = 0 < len(sides) <= config.max_size
    return config.consumer_migration_policy in _DOWNGRADING and has_room and None not in sides


def downgraded(group: ConsumerGroup, topics: Topics, now_ms: int) -> GroupMetadata:
    """All join again: a leader assigns from now on. Each has what it has, not its target as in
    Kafka: that may be with another still, should the group be upgraded again before all have
    joined."""
    spoken = {id_: of_member(each) for id_, each in group.members.items()}
    protocol = protocols.select(list(spoken.values()))
    members = []
    for member in group.members.values():
        side = member.classic
        assert side is not None, member.id
        subscription = protocols.metadata_under(spoken[member.id], protocol)
        said = read_subscription(subscription)
        share: dict[str, list[int]] = {}
        for topic_id, index in (*member.current.assigned, *member.current.revoking):
            name = topics.name_of(topic_id)
            if name is not None:
                share.setdefault(name, []).append(index)
        members.append(
            MemberMetadata(
                id=member.id,
                instance_id=member.instance_id,
                client_id=member.subscription.client_id,
                client_host=member.subscription.client_host,
                rebalance_timeout_ms=member.subscription.rebalance_timeout_ms,
                session_timeout_ms=side.session_timeout_ms,
                subscription=subscription,
                assignment=write_assignment(0 if said is None else said.version, share),
            )
        )
    return GroupMetadata(
        protocol_type=protocols.CONSUMER,
        generation=group.epoch,
        protocol=protocol,
        leader=members[0].id,
        state_since_ms=now_ms,
        members=tuple(members),
    )
