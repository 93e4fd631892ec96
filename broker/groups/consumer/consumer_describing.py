"""Tools are told of groups of the consumer protocol by ConsumerGroupDescribe.

Source: KIP-848; Kafka's ConsumerGroup.asDescribedGroup.
"""

from collections.abc import Iterable

from broker.groups.consumer.consumer_group import ConsumerGroup, ConsumerMember
from broker.groups.consumer.consumer_records import by_topic
from broker.groups.consumer.consumer_values import TopicPartition
from broker.groups.consumer.topics import Topics
from wire.errors import ErrorCode
from wire.messages.consumer_groups import (
    DescribedAssignment,
    DescribedConsumerGroup,
    DescribedMember,
    DescribedPartitions,
)

__all__ = ["describe_consumers", "not_described"]

_CLASSIC, _CONSUMER = 0, 1  # types of members


def describe_consumers(
    group: ConsumerGroup, topics: Topics, *, default_assignor: str, operations: int
) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        group_id=group.id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or default_assignor,
        members=tuple(_member(group, member, topics) for member in group.members.values()),
        authorized_operations=operations,
    )


def not_described(group_id: str, error: ErrorCode, message: str | None) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(group_id=group_id, error_code=error, error_message=message)


def _member(group: ConsumerGroup, member: ConsumerMember, topics: Topics) -> DescribedMember:
    said = member.subscription
    return DescribedMember(
        member_id=member.id,
        instance_id=said.instance_id,
        rack_id=said.rack_id,
        member_epoch=member.epoch,
        client_id=said.client_id,
        client_host=said.client_host,
        subscribed_topic_names=said.topic_names,
        subscribed_topic_regex=said.topic_pattern or None,
        assignment=_assignment(member.current.assigned, topics),
        target_assignment=_assignment(group.target(member.id), topics),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _assignment(partitions: Iterable[TopicPartition], topics: Topics) -> DescribedAssignment:
    """Topics that are gone are left out."""
    return DescribedAssignment(
        topic_partitions=tuple(
            DescribedPartitions(topic_id=topic_id, topic_name=name, partitions=indexes)
            for topic_id, indexes in by_topic(partitions).items()
            if (name := topics.name_of(topic_id)) is not None
        )
    )
