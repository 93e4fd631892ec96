"""These rules say who may commit offsets, what is committed, and what OffsetFetch answers.

The rules are pure. A partition without a committed offset is answered as -1. Consumers then begin
where their own setting says (`auto.offset.reset`).

Source: KIP-320 (leader epochs); Kafka's OffsetMetadataManager and ClassicGroup.
"""

from collections.abc import Callable, Container, Mapping
from types import MappingProxyType
from uuid import UUID

from broker.config import GroupConfig
from broker.groups.group import Group, GroupState
from broker.groups.records import CommittedOffset, OffsetChange
from broker.verifying import Place
from wire.capabilities import Capability, Lacking
from wire.errors import ErrorCode
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from wire.messages.transactions import TxnOffsetCommitResponse
from wire.primitives import INT64_MAX, ZERO_UUID

__all__ = [
    "GroupOffsets",
    "TopicIdOf",
    "TopicWith",
    "check_commit",
    "commit",
    "fetch",
    "reaches_group",
    "refused_commit",
    "refused_fetch",
]

GroupOffsets = dict[Place, CommittedOffset]  # of a group
TopicIdOf = Callable[[str], UUID | None]  # None: there is no such topic
TopicWith = Callable[[str, int], UUID | None]  # its id; None: there is no such partition
_UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


# --- commit ---------------------------------------------------------------------------------


def check_commit(group: Group | None, request: OffsetCommitRequest, lacking: Lacking) -> ErrorCode:
    """May this member, or somebody who is no member, commit now?"""
    generation = request.generation_id_or_member_epoch
    if group is None:
        if generation < 0:
            return ErrorCode.NONE  # not a member: it only keeps its offsets here
        if Capability.KNOWS_GROUP_ID_NOT_FOUND in lacking:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.GROUP_ID_NOT_FOUND
    if generation < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    error = group.check_generation(request.member_id, request.group_instance_id, generation)
    if error is ErrorCode.NONE and group.state is GroupState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return error


def commit(
    request: OffsetCommitRequest,
    config: GroupConfig,
    topic_with: TopicWith,
    now_ms: int,
    stale: Mapping[Place, ErrorCode] = MappingProxyType({}),
    *,
    by_id: bool = False,
) -> tuple[tuple[OffsetChange, ...], OffsetCommitResponse]:
    """Returns the records to be written, and the answer that is due once they are.

    Of `stale` places another member may have read on. `by_id`: the request has named topics so.
    """
    changes = []
    topics = []
    expire_ms = -1
    if request.retention_time_ms >= 0:
        expire_ms = min(now_ms + request.retention_time_ms, INT64_MAX)
    for topic in request.topics:
        results = []
        for asked in topic.partitions:
            topic_id = topic_with(topic.name, asked.partition_index)
            error = _unknown(topic, by_id) if topic_id is None else _partition_error(asked, config)
            if error is ErrorCode.NONE:
                error = stale.get((topic.name, asked.partition_index), error)
            results.append(
                OffsetCommitResponsePartition(
                    partition_index=asked.partition_index, error_code=error
                )
            )
            if error is not ErrorCode.NONE or topic_id is None:
                continue
            committed = CommittedOffset(
                offset=asked.committed_offset,
                leader_epoch=asked.committed_leader_epoch,
                metadata=asked.committed_metadata or "",
                commit_timestamp_ms=now_ms,
                expire_timestamp_ms=expire_ms,
                topic_id=topic_id,
            )
            changes.append(
                OffsetChange(
                    group_id=request.group_id,
                    topic=topic.name,
                    partition=asked.partition_index,
                    committed=committed,
                )
            )
        topics.append(
            OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=tuple(results)
            )
        )
    return tuple(changes), OffsetCommitResponse(topics=tuple(topics))


def _unknown(topic: OffsetCommitRequestTopic, by_id: bool) -> ErrorCode:
    """No topic has the id, if none has given its name to it."""
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.UNKNOWN_TOPIC_ID if by_id and not topic.name else unknown


def reaches_group(response: OffsetCommitResponse | TxnOffsetCommitResponse) -> bool:
    """Does a commit make a group that is not there? As in Kafka: if one of its partitions exists,
    even if what is committed for it is refused."""
    errors = (each.error_code for topic in response.topics for each in topic.partitions)
    return any(error not in _UNKNOWN for error in errors)


def _partition_error(asked: OffsetCommitRequestPartition, config: GroupConfig) -> ErrorCode:
    if len(asked.committed_metadata or "") > config.offset_metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def refused_commit(
    request: OffsetCommitRequest, error: ErrorCode, topic_with: TopicWith, *, by_id: bool = False
) -> OffsetCommitResponse:
    """A partition that does not exist is called unknown, whatever is wrong with the member."""

    def refusal(topic: OffsetCommitRequestTopic, index: int) -> ErrorCode:
        is_known = topic_with(topic.name, index) is not None
        return error if is_known else _unknown(topic, by_id)

    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=refusal(topic, partition.partition_index),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


# --- fetch ----------------------------------------------------------------------------------


def fetch(
    offsets: Mapping[Place, CommittedOffset],
    asked: OffsetFetchRequestGroup,
    topic_id_of: TopicIdOf,
    unstable: Container[Place] = (),
    *,
    by_id: bool = False,
) -> OffsetFetchResponseGroup:
    """An offset in an earlier topic of the same name says nothing about the present one.

    Of `unstable` partitions it may soon be another: the client asks again. Of a topic that is no
    more, a client that names topics by id is not told.
    """

    def told(topic: str, topic_id: UUID | None, index: int) -> OffsetFetchResponsePartitions:
        if (topic, index) in unstable:
            return OffsetFetchResponsePartitions(
                partition_index=index, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT
            )
        committed = offsets.get((topic, index))
        is_earlier = committed is not None and committed.topic_id not in (ZERO_UUID, topic_id)
        return _told(index, None if is_earlier and topic_id is not None else committed)

    def of_topic(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
        topic_id = topic_id_of(topic.name)
        return OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic_id or ZERO_UUID,
            partitions=tuple(
                told(topic.name, topic_id, index) for index in topic.partition_indexes
            ),
        )

    if asked.topics is None:
        found = map(of_topic, _all_topics(offsets))
        topics = tuple(each for each in found if each.topic_id.int or not by_id)
    else:
        known = (each for each in asked.topics if each.name or not by_id)
        unknown = (each for each in asked.topics if by_id and not each.name)
        topics = (
            *map(of_topic, known),
            *(_refused_topic(each, ErrorCode.UNKNOWN_TOPIC_ID) for each in unknown),
        )
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)


def _all_topics(
    offsets: Mapping[Place, CommittedOffset],
) -> tuple[OffsetFetchRequestTopics, ...]:
    found: dict[str, list[int]] = {}
    for topic, index in sorted(offsets):
        found.setdefault(topic, []).append(index)
    return tuple(
        OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(indexes))
        for topic, indexes in found.items()
    )


def _told(index: int, committed: CommittedOffset | None) -> OffsetFetchResponsePartitions:
    if committed is None:
        return OffsetFetchResponsePartitions(partition_index=index)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def refused_fetch(
    asked: OffsetFetchRequestGroup, error: ErrorCode, lacking: Lacking
) -> OffsetFetchResponseGroup:
    """A client of the first versions has no place for an error but in each partition."""
    topics: tuple[OffsetFetchResponseTopics, ...] = ()
    if Capability.TAKES_ERROR_OF_GROUP in lacking:
        topics = tuple(_refused_topic(topic, error) for topic in asked.topics or ())
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics, error_code=error)


def _refused_topic(topic: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetFetchResponsePartitions(partition_index=index, error_code=error)
            for index in topic.partition_indexes
        ),
    )
