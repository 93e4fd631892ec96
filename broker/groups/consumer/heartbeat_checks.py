"""Heartbeats that are refused: what is wrong with them in themselves, and who is fenced.

Source: Kafka's GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid and
GroupMetadataManager.throwIf*.
"""

from dataclasses import dataclass

from broker.config import GroupConfig
from broker.coordination.patterns import compile_pattern
from broker.groups.consumer.consumer_group import ConsumerGroup, ConsumerMember
from broker.groups.consumer.consumer_values import (
    JOINS,
    LEAVES,
    LEAVES_FOR_A_WHILE,
    TopicPartition,
)
from wire.capabilities import Capability, Lacking
from wire.errors import ErrorCode
from wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest

__all__ = [
    "Refusal",
    "epoch_refusal",
    "member_of",
    "request_refusal",
    "room_refusal",
    "static_refusal",
]


@dataclass(frozen=True, slots=True)
class Refusal:
    error: ErrorCode
    message: str | None


def request_refusal(
    request: ConsumerGroupHeartbeatRequest, lacking: Lacking, assignors: tuple[str, ...]
) -> Refusal | None:
    problem = _problem(request, lacking)
    if problem is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, problem)
    assignor = request.server_assignor
    if assignor is not None and assignor not in assignors:
        known = ", ".join(assignors)
        text = f"ServerAssignor {assignor} is not supported. Supported assignors: {known}."
        return Refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, text)
    pattern = request.subscribed_topic_regex
    if pattern and compile_pattern(pattern) is None:
        text = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression."
        return Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, text)
    return None


def _problem(request: ConsumerGroupHeartbeatRequest, lacking: Lacking) -> str | None:
    epoch = request.member_epoch
    makes_id = Capability.MAKES_ITS_MEMBER_ID not in lacking
    if not request.member_id.strip() and (makes_id or epoch > JOINS or epoch == LEAVES):
        return "MemberId can't be empty."
    for name, value in (
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if value is not None and not value.strip():
            return f"{name} can't be empty."
    if epoch == JOINS:
        return _problem_of_joining(request)
    if epoch == LEAVES_FOR_A_WHILE and request.instance_id is None:
        return "InstanceId can't be null."
    return "MemberEpoch is invalid." if epoch < LEAVES_FOR_A_WHILE else None


def _problem_of_joining(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return (
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null"
            " when (re-)joining."
        )
    return None


def room_refusal(group: ConsumerGroup, member_id: str, config: GroupConfig) -> Refusal | None:
    if len(group.members) < config.consumer_max_size or member_id in group.members:
        return None
    text = f"The consumer group has reached its maximum capacity of {config.consumer_max_size}"
    return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, f"{text} members.")


# --- members --------------------------------------------------------------------------------


def member_of(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> ConsumerMember | Refusal:
    """The member that sends this, and is in the group."""
    if instance_id is None:
        member = group.members.get(member_id)
        text = f"Member {member_id} is not a member of group {group.id}."
        return member or Refusal(ErrorCode.UNKNOWN_MEMBER_ID, text)
    static = group.static_member(instance_id)
    if static is None:
        return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if static.id != member_id:
        text = (
            f"Static member {member_id} with instance id {instance_id} was fenced by member"
            f" {static.id}."
        )
        return Refusal(ErrorCode.FENCED_INSTANCE_ID, text)
    return static


def static_refusal(member_id: str, before: ConsumerMember) -> Refusal | None:
    """The place of a static member is free once its process has said that it stops. A process of
    the classic protocol says no such thing."""
    if before.epoch == LEAVES_FOR_A_WHILE or before.classic is not None:
        return None
    text = (
        f"Static member {member_id} with instance id {before.instance_id} cannot join the group"
        f" because the instance id is owned by {before.id} member."
    )
    return Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, text)


def epoch_refusal(
    member: ConsumerMember, epoch: int, owned: frozenset[TopicPartition] | None
) -> Refusal | None:
    """A member may not have heard of its last step: then it is told again, if it has no more than
    it may have by now."""
    known = member.epoch
    if epoch == known:
        return None
    is_last = epoch < known and epoch == member.current.previous_epoch
    if is_last and owned is not None and owned <= member.current.assigned.keys():
        return None
    size = "greater" if epoch > known else "smaller"
    text = (
        f"The consumer group member has a {size} member epoch ({epoch}) than the one known by the"
        f" group coordinator ({known}). The member must abandon all its partitions and rejoin."
    )
    return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, text)
