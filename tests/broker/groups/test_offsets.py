"""Offsets without a log: what is told, what is refused, and what has become too old."""

from dataclasses import replace
from uuid import UUID

import pytest

from broker.config import GroupConfig
from broker.groups import offsets, removal
from broker.groups.group import Group, GroupState
from broker.groups.offsets import GroupOffsets
from broker.groups.protocols import subscribed_topics
from broker.groups.records import CommittedOffset, decode_change, encode_change
from tests.broker.groups.scenes import CONFIG, NOW, SUBSCRIPTION, group_in
from wire.capabilities import lacking
from wire.errors import ErrorCode
from wire.message import replace as replace_message
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

RETENTION_MS = 100
TOPIC_ID = UUID(int=7)


def committed(offset: int = 5, at_ms: int = NOW, **fields: int) -> CommittedOffset:
    return CommittedOffset(offset=offset, commit_timestamp_ms=at_ms, **fields)  # type: ignore[arg-type]  # numbers only


def expired(group: Group, known: GroupOffsets, now_ms: int) -> GroupOffsets:
    return removal.expired(group, known, retention_ms=RETENTION_MS, now_ms=now_ms)


# --- commit and fetch


def commit_request(topic: str, metadata: str = "", **fields: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(
        partition_index=3, committed_offset=9, committed_leader_epoch=4, committed_metadata=metadata
    )
    topics = (OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
    return OffsetCommitRequest(group_id="g", topics=topics, **fields)  # type: ignore[arg-type]  # numbers only


def topic_id_of(name: str) -> UUID | None:
    return TOPIC_ID if name == "t" else None


def topic_with(name: str, index: int) -> UUID | None:
    """The topics have partitions 0 to 3."""
    return TOPIC_ID if name in ("t", "given-up") and 0 <= index < 4 else None


def test_a_commit_keeps_epoch_metadata_and_topic_id() -> None:
    changes, response = offsets.commit(commit_request("t", "here"), CONFIG, topic_with, NOW)
    (change,) = changes
    assert change.committed == CommittedOffset(
        offset=9, leader_epoch=4, metadata="here", commit_timestamp_ms=NOW, topic_id=TOPIC_ID
    )
    assert response.topics[0].partitions[0].error_code is ErrorCode.NONE


def test_an_old_client_says_how_long_an_offset_is_kept() -> None:
    request = commit_request("t", retention_time_ms=70)
    ((change,), _) = offsets.commit(request, CONFIG, topic_with, NOW)
    assert change.committed is not None
    assert change.committed.expire_timestamp_ms == NOW + 70


def test_an_offset_may_be_kept_longer_than_time_can_be_counted() -> None:
    request = commit_request("t", retention_time_ms=2**63 - 1)
    ((change,), _) = offsets.commit(request, CONFIG, topic_with, NOW)
    assert change.committed is not None
    assert decode_change(encode_change(change)) == replace(
        change, committed=replace(change.committed, leader_epoch=-1, topic_id=UUID(int=0))
    )


@pytest.mark.parametrize(
    ("topic", "metadata", "error"),
    [
        ("absent", "", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", "x" * 11, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("t", "x" * 10, ErrorCode.NONE),
    ],
)
def test_a_commit_can_fail_for_one_partition(topic: str, metadata: str, error: ErrorCode) -> None:
    config = GroupConfig(offset_metadata_max_bytes=10)
    changes, response = offsets.commit(commit_request(topic, metadata), config, topic_with, NOW)
    assert response.topics[0].partitions[0].error_code is error
    assert len(changes) == (error is ErrorCode.NONE)
    assert offsets.reaches_group(response) == (topic == "t")


@pytest.mark.parametrize("index", [-1, 4])
def test_a_commit_for_a_partition_that_does_not_exist_fails_alone(index: int) -> None:
    request = commit_request("t")
    (topic,) = request.topics
    absent = replace_message(topic.partitions[0], partition_index=index)
    request = replace_message(
        request, topics=(replace_message(topic, partitions=(absent, *topic.partitions)),)
    )
    changes, response = offsets.commit(request, CONFIG, topic_with, NOW)
    assert [change.partition for change in changes] == [3]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors_of(response) == [unknown, ErrorCode.NONE]
    assert offsets.reaches_group(response), "by the partition that exists"
    refused = offsets.refused_commit(request, ErrorCode.ILLEGAL_GENERATION, topic_with)
    assert errors_of(refused) == [unknown, ErrorCode.ILLEGAL_GENERATION]


def errors_of(response: OffsetCommitResponse) -> list[ErrorCode]:
    return [part.error_code for topic in response.topics for part in topic.partitions]


def test_what_was_never_committed_is_told_as_minus_one() -> None:
    known = {("t", 0): committed(offset=8, leader_epoch=2)}
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0, 1)),)
    told = offsets.fetch(known, OffsetFetchRequestGroup(group_id="g", topics=topics), topic_id_of)
    assert [
        (part.partition_index, part.committed_offset, part.committed_leader_epoch)
        for part in told.topics[0].partitions
    ] == [(0, 8, 2), (1, -1, -1)]


@pytest.mark.parametrize(
    ("topic", "topic_id", "offset"),
    [
        ("t", TOPIC_ID, 5),
        ("t", UUID(int=8), -1),
        ("t", UUID(int=0), 5),  # written by a coordinator that did not note it
        ("absent", UUID(int=8), 5),
    ],
)
def test_an_offset_of_an_earlier_topic_of_that_name_is_not_told(
    topic: str, topic_id: UUID, offset: int
) -> None:
    known = {(topic, 0): replace(committed(), topic_id=topic_id)}
    topics = (OffsetFetchRequestTopics(name=topic, partition_indexes=(0,)),)
    told = offsets.fetch(known, OffsetFetchRequestGroup(group_id="g", topics=topics), topic_id_of)
    assert told.topics[0].partitions[0].committed_offset == offset


def test_all_offsets_are_told_by_topic() -> None:
    known = {("b", 1): committed(), ("a", 0): committed(), ("b", 0): committed()}
    told = offsets.fetch(known, OffsetFetchRequestGroup(group_id="g", topics=None), topic_id_of)
    assert [(topic.name, len(topic.partitions)) for topic in told.topics] == [("a", 1), ("b", 2)]


def test_an_error_stands_in_the_partitions_where_a_version_has_no_other_place() -> None:
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    asked = OffsetFetchRequestGroup(group_id="g", topics=topics)
    error = ErrorCode.NOT_COORDINATOR
    old = offsets.refused_fetch(asked, error, lacking(OffsetFetchRequest, 1))
    new = offsets.refused_fetch(asked, error, lacking(OffsetFetchRequest, 8))
    assert old.topics[0].partitions[0].error_code is error
    assert (new.topics, new.error_code) == ((), error)


# --- expiry


def test_a_simple_group_keeps_an_offset_from_its_commit_on() -> None:
    group = Group(id="g", state_since_ms=0)
    known = {("t", 0): committed(at_ms=NOW), ("t", 1): committed(at_ms=NOW + 50)}
    assert expired(group, known, NOW + 99) == {}
    assert list(expired(group, known, NOW + 100)) == [("t", 0)]
    assert list(expired(group, known, NOW + 150)) == [("t", 0), ("t", 1)]


def test_an_empty_group_keeps_its_offsets_from_when_it_became_empty() -> None:
    group = Group(id="g", state_since_ms=NOW, protocol_type="consumer")
    known = {("t", 0): committed(at_ms=0)}
    assert expired(group, known, NOW + 99) == {}
    assert list(expired(group, known, NOW + 100)) == [("t", 0)]


def test_members_keep_the_offsets_of_what_they_are_subscribed_to() -> None:
    group = group_in(GroupState.STABLE)
    known = {("t", 0): committed(at_ms=0), ("given-up", 0): committed(at_ms=0)}
    assert list(expired(group, known, NOW)) == [("given-up", 0)]


@pytest.mark.parametrize("state", [GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE])
def test_nothing_is_forgotten_during_a_rebalance(state: GroupState) -> None:
    assert expired(group_in(state), {("given-up", 0): committed(at_ms=0)}, NOW) == {}


def test_an_offset_with_its_own_end_goes_by_that() -> None:
    group = Group(id="g", state_since_ms=0)
    known = {("t", 0): replace(committed(at_ms=0), expire_timestamp_ms=NOW)}
    assert expired(group, known, NOW - 1) == {}
    assert expired(group, known, NOW) == known


def test_a_subscription_that_cannot_be_read_may_be_to_anything() -> None:
    assert subscribed_topics(SUBSCRIPTION) == frozenset({"t"})
    newer = b"\0\1\0\0\0\2\0\1a\0\1b, and what later versions add"
    assert subscribed_topics(newer) == frozenset({"a", "b"})
    for content in (b"", b"\0", b"\0\0\0\0\0\1\0\5t", b"\0\0\0\0\0\1\0\1\xff"):
        assert subscribed_topics(content) is None
    group = group_in(GroupState.STABLE)
    group.members["b"].protocols = ()
    assert expired(group, {("given-up", 0): committed(at_ms=0)}, NOW) == {}


# --- OffsetDelete


def delete(
    group: Group | None, *places: tuple[str, int]
) -> tuple[list[tuple[str, int]], list[ErrorCode]]:
    request = OffsetDeleteRequest(
        group_id="g",
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=name, partitions=(OffsetDeleteRequestPartition(partition_index=index),)
            )
            for name, index in places
        ),
    )
    known = {("t", 0): committed(), ("given-up", 0): committed()}
    changes, response = removal.delete_offsets(group, known, request, topic_with)
    errors = [part.error_code for topic in response.topics for part in topic.partitions]
    return [(change.topic, change.partition) for change in changes], errors or [response.error_code]


def test_offsets_of_topics_that_nobody_reads_can_be_deleted() -> None:
    places = (("t", 0), ("given-up", 0), ("given-up", 4), ("absent", 0))
    gone, errors = delete(group_in(GroupState.STABLE), *places)
    assert gone == [("given-up", 0)]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE, unknown, unknown]


def test_offsets_of_a_group_that_is_absent_or_not_of_consumers_are_kept() -> None:
    other = group_in(GroupState.STABLE)
    other.protocol_type = "connect"
    assert delete(None, ("t", 0)) == ([], [ErrorCode.GROUP_ID_NOT_FOUND])
    assert delete(other, ("t", 0)) == ([], [ErrorCode.NON_EMPTY_GROUP])
