"""Committed offsets are removed when a client deletes them, or when they have expired.

The rules are pure. They return the tombstones that the coordinator has to write.

Source: KIP-211 (expiration), KIP-496 (OffsetDelete); Kafka's OffsetMetadataManager.
"""

from collections.abc import Iterator, Mapping, Sequence

from broker.groups.group import Group, GroupState
from broker.groups.offsets import GroupOffsets, TopicWith
from broker.groups.records import Change, CommittedOffset, OffsetChange
from wire.errors import ErrorCode
from wire.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

__all__ = ["delete_offsets", "expired", "parts", "tombstones"]

_CHANGES_MAX = 500  # in a batch
_BYTES_OF_A_CHARACTER = 4  # at most
_BYTES_BESIDE_NAMES = 100  # at most, with a share of the batch's header


def tombstones(
    group_id: str, offsets: Mapping[tuple[str, int], CommittedOffset]
) -> Iterator[OffsetChange]:
    for topic, index in sorted(offsets):
        yield OffsetChange(group_id=group_id, topic=topic, partition=index, committed=None)


def parts(changes: Sequence[Change], *, bytes_max: int) -> Iterator[Sequence[Change]]:
    """Tombstones in batches, as large as they may be: names of tens of kilobytes are allowed."""
    part: list[Change] = []
    size = 0
    for change in changes:
        topic = change.topic if isinstance(change, OffsetChange) else ""
        added = _BYTES_OF_A_CHARACTER * (len(change.group_id) + len(topic)) + _BYTES_BESIDE_NAMES
        if part and (len(part) == _CHANGES_MAX or size + added > bytes_max):
            yield part
            part, size = [], 0
        part.append(change)
        size += added
    if part:
        yield part


def expired(group: Group, offsets: GroupOffsets, *, retention_ms: int, now_ms: int) -> GroupOffsets:
    """The offsets that nobody has needed for the retention time.

    It counts from when the group lost its last member, or from the commit if it has no members of
    its own, or has members that want other topics.
    """
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
    group: Group | None,
    known: GroupOffsets,
    request: OffsetDeleteRequest,
    topic_with: TopicWith,
) -> tuple[tuple[OffsetChange, ...], OffsetDeleteResponse]:
    """Returns the records to be written, and the answer that is due once they are."""
    if group is None:
        return (), OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    if group.state is not GroupState.EMPTY and not group.is_consumers:
        return (), OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP)
    subscribed = group.subscribed_topics()
    gone: GroupOffsets = {}

    def delete(topic: str, index: int) -> ErrorCode:
        if topic_with(topic, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic in subscribed:
            return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        if (topic, index) in known:
            gone[topic, index] = known[topic, index]
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
