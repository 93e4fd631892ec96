"""Committed offsets are removed when a client deletes them, or when they have expired.

The rules are pure. They return the tombstones that the coordinator has to write.

Source: KIP-211 (expiration), KIP-496 (OffsetDelete); Kafka's OffsetMetadataManager.
"""

from collections.abc import Container, Iterable, Iterator

from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.group import Group, GroupState
from broker.groups.offsets import GroupOffsets, TopicWith
from broker.groups.records import CommittedOffset, OffsetChange
from broker.verifying import Place
from wire.errors import ErrorCode
from wire.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

__all__ = ["AnyGroup", "delete_offsets", "expired", "tombstones"]

AnyGroup = Group | ConsumerGroup


def tombstones(group_id: str, places: Iterable[Place]) -> Iterator[OffsetChange]:
    for topic, index in sorted(places):
        yield OffsetChange(group_id=group_id, topic=topic, partition=index, committed=None)


def expired(
    group: AnyGroup, offsets: GroupOffsets, *, retention_ms: int, now_ms: int
) -> GroupOffsets:
    """The offsets that nobody has needed for the retention time.

    It counts from when the group lost its last member, or from the commit if it has no members of
    its own, or has members that want other topics. A group of KIP-848 does not say when it lost
    its last member: there it counts from the commit.
    """
    if isinstance(group, ConsumerGroup):
        wanted = group.subscribed_topics()
        return {
            place: committed
            for place, committed in offsets.items()
            if place[0] not in wanted and committed.commit_timestamp_ms + retention_ms <= now_ms
        }
    is_simple = group.protocol_type is None
    is_empty = group.state is GroupState.EMPTY
    if not (is_simple or is_empty or (group.is_consumers and group.state is GroupState.STABLE)):
        return {}

    def is_expired(committed: CommittedOffset) -> bool:
        if committed.expire_timestamp_ms >= 0:
            return committed.expire_timestamp_ms <= now_ms
        counts_from_commit = is_simple or not is_empty or group.state_since_ms < 0
        since_ms = committed.commit_timestamp_ms if counts_from_commit else group.state_since_ms
        return since_ms + retention_ms <= now_ms

    old = {place: committed for place, committed in offsets.items() if is_expired(committed)}
    subscribed = group.subscribed_topics() if old else ()
    return {place: committed for place, committed in old.items() if place[0] not in subscribed}


def delete_offsets(
    group: AnyGroup | None,
    known: Container[Place],
    request: OffsetDeleteRequest,
    topic_with: TopicWith,
) -> tuple[tuple[OffsetChange, ...], OffsetDeleteResponse]:
    """Returns the records to be written, and the answer that is due once they are."""
    if group is None:
        return (), OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    is_consumers = isinstance(group, ConsumerGroup) or group.is_consumers
    if group.state is not GroupState.EMPTY and not is_consumers:
        return (), OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP)
    subscribed: Container[str] = group.subscribed_topics()
    gone: set[Place] = set()

    def delete(topic: str, index: int) -> ErrorCode:
        if topic_with(topic, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic in subscribed:
            return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        if (topic, index) in known:
            gone.add((topic, index))
        return ErrorCode.NONE

    topics = tuple(
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=tuple(
                OffsetDeleteResponsePartition(
                    partition_index=partition.partition_index,
                    error_code=delete(topic.name, partition.partition_index),
                )
                for partition in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return tuple(tombstones(group.id, gone)), OffsetDeleteResponse(topics=topics)
