"""Members of the classic protocol in a group of the consumer protocol.

They join and sync as they would elsewhere, and what they take for a generation is their member
epoch. The coordinator assigns: it reads their subscriptions, and tells nobody that he leads. A
member that has to give partitions back, or that can have more, is told to join again.

The rules are pure.

Source: KIP-848; Kafka's GroupMetadataManager, classicGroup*ToConsumerGroup.
"""

from collections.abc import Iterable

from broker.groups import protocols
from broker.groups.consumer.beating import Beaten, Given, come_back, follow
from broker.groups.consumer.consumer_group import ConsumerGroup, ConsumerMember
from broker.groups.consumer.consumer_values import (
    ClassicProtocol,
    ClassicSide,
    MemberState,
    Subscription,
    TopicPartition,
)
from broker.groups.consumer.drafts import Draft
from broker.groups.consumer.heartbeat_checks import Refusal, member_of, room_refusal
from broker.groups.consumer.topics import Topics
from broker.groups.embedded import Embedded, read_subscription, write_assignment
from broker.groups.joiner import Joiner
from broker.groups.protocols import CONSUMER, Protocols
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

__all__ = [
    "check_heartbeat",
    "check_sync",
    "id_places",
    "join",
    "joined_consumers",
    "of_member",
    "synced",
]


# --- join -----------------------------------------------------------------------------------


def join(group: ConsumerGroup, joiner: Joiner, given: Given) -> Beaten | ErrorCode:
    said = _embedded(group, joiner)
    if said is None:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    member_id = joiner.member_id or joiner.new_id
    refusal = room_refusal(group, member_id, given.config)
    if refusal is not None:
        return refusal.error
    draft = Draft(group)
    member = _joining(draft, joiner, member_id)
    if isinstance(member, Refusal):
        return member.error
    side = ClassicSide(
        session_timeout_ms=joiner.request.session_timeout_ms,
        protocols=tuple(
            ClassicProtocol(name=each.name, metadata=each.metadata)
            for each in joiner.request.protocols
        ),
    )
    owned = id_places(said.owned, given.topics)
    refusal = follow(draft, member, _subscription(member, said, joiner), side, owned, given)
    return Beaten(draft, member_id) if refusal is None else refusal.error


def _embedded(group: ConsumerGroup, joiner: Joiner) -> Embedded | None:
    """Its first subscription, if it speaks what the others of its kind do."""
    wanted = joiner.request.protocols
    others = [
        of_member(each)
        for each in group.members.values()
        if each.classic is not None and each.id != joiner.member_id
    ]
    if joiner.request.protocol_type != CONSUMER or not protocols.supports(others, wanted):
        return None
    return read_subscription(wanted[0].metadata)


def of_member(member: ConsumerMember) -> Protocols:
    """What it speaks: nothing, if it is of the consumer protocol."""
    side = () if member.classic is None else member.classic.protocols
    return tuple(JoinGroupRequestProtocol(name=each.name, metadata=each.metadata) for each in side)


def _joining(draft: Draft, joiner: Joiner, member_id: str) -> ConsumerMember | Refusal:
    group = draft.group
    if joiner.instance_id is not None:
        before = group.static_member(joiner.instance_id)
        if before is not None and before.id != joiner.member_id:
            if joiner.member_id:
                return Refusal(ErrorCode.FENCED_INSTANCE_ID, None)
            return come_back(draft, before, member_id)
        return before or ConsumerMember(id=member_id)
    return group.members.get(member_id) or ConsumerMember(id=member_id)


def _subscription(member: ConsumerMember, said: Embedded, joiner: Joiner) -> Subscription:
    return replace(
        member.subscription,
        instance_id=joiner.instance_id,
        rack_id=said.rack_id,
        client_id=joiner.client_id,
        client_host=joiner.client_host,
        topic_names=tuple(sorted(set(said.topics))),
        topic_pattern="",
        rebalance_timeout_ms=joiner.rebalance_timeout_ms,
    )


def id_places(places: Iterable[tuple[str, int]], topics: Topics) -> frozenset[TopicPartition]:
    """Partitions that do not exist are left out."""
    found = ((topics.metadata(topic), index) for topic, index in places)
    return frozenset(
        (topic.id, index)
        for topic, index in found
        if topic is not None and 0 <= index < topic.partition_count
    )


def joined_consumers(member: ConsumerMember) -> JoinGroupResponse:
    """Nobody leads."""
    assert member.classic is not None, member.id
    return JoinGroupResponse(
        generation_id=member.epoch,
        protocol_type=CONSUMER,
        protocol_name=member.classic.protocols[0].name,
        member_id=member.id,
    )


# --- sync and heartbeat ---------------------------------------------------------------------


def _member(
    group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest
) -> ConsumerMember | ErrorCode:
    member = member_of(group, request.member_id, request.group_instance_id)
    if isinstance(member, Refusal):
        return member.error
    if member.classic is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if request.generation_id != member.epoch:
        return ErrorCode.ILLEGAL_GENERATION
    return member


def check_sync(group: ConsumerGroup, request: SyncGroupRequest) -> ConsumerMember | ErrorCode:
    member = _member(group, request)
    if isinstance(member, ErrorCode):
        return member
    assert member.classic is not None, member.id
    named = request.protocol_type, request.protocol_name
    known = CONSUMER, member.classic.protocols[0].name
    if any(said not in (None, told) for said, told in zip(named, known, strict=True)):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    is_behind = group.assignment_epoch > member.epoch
    if is_behind and member.current.state is not MemberState.UNREVOKED_PARTITIONS:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return member


def synced(member: ConsumerMember, topics: Topics) -> SyncGroupResponse:
    assert member.classic is not None, member.id
    first = member.classic.protocols[0]
    said = read_subscription(first.metadata)
    partitions: dict[str, list[int]] = {}
    for topic_id, index in member.current.assigned:
        name = topics.name_of(topic_id)
        if name is not None:
            partitions.setdefault(name, []).append(index)
    return SyncGroupResponse(
        protocol_type=CONSUMER,
        protocol_name=first.name,
        assignment=write_assignment(0 if said is None else said.version, partitions),
    )


def check_heartbeat(
    group: ConsumerGroup, request: HeartbeatRequest
) -> tuple[ConsumerMember | None, ErrorCode]:
    """The member, if it is one; and what it is told: REBALANCE_IN_PROGRESS if it is to join."""
    member = _member(group, request)
    if isinstance(member, ErrorCode):
        return None, member
    has_to_join = (
        group.assignment_epoch > member.epoch
        or member.current.state is MemberState.UNREVOKED_PARTITIONS
        or (member.current.state is MemberState.UNRELEASED_PARTITIONS and not _waits(group, member))
    )
    return member, ErrorCode.REBALANCE_IN_PROGRESS if has_to_join else ErrorCode.NONE


def _waits(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Somebody else still has one of its partitions."""
    wanted = group.target(member.id)
    return any(group.owners.get(each, member.id) != member.id for each in wanted)
