"""OffsetCommit and OffsetFetch 10 name topics by id."""

from typing import Any
from uuid import UUID

import pytest

from broker.groups import offsets
from broker.groups.offsets_topic import OFFSETS_TOPIC
from broker.groups.records import CommittedOffset
from tests.broker.brokers import Brokers
from wire.errors import ErrorCode
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

STRANGE, ZERO = UUID(int=13), UUID(int=0)


@pytest.fixture
def brokers() -> Brokers:
    running = Brokers(3, replica_lag_time_max_ms=1000).start()
    for topic in ("t", OFFSETS_TOPIC):
        running.create_topic(topic, (1, 2, 3))
    running.run(600)
    return running


def id_of(brokers: Brokers) -> UUID:
    return brokers.topics["t"]


def commit(brokers: Brokers, *ids: UUID, version: int = 10) -> list[tuple[UUID, ErrorCode]]:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    topics = tuple(OffsetCommitRequestTopic(topic_id=id_, partitions=(partition,)) for id_ in ids)
    request = OffsetCommitRequest(group_id="g", topics=topics)
    told = brokers.call(1, request, api_version=version)
    return [(each.topic_id, each.partitions[0].error_code) for each in told.topics]


def fetch(brokers: Brokers, *ids: UUID, everything: bool = False) -> list[Any]:
    topics = tuple(OffsetFetchRequestTopics(topic_id=id_, partition_indexes=(0,)) for id_ in ids)
    asked = OffsetFetchRequestGroup(group_id="g", topics=None if everything else topics)
    (group,) = brokers.call(1, OffsetFetchRequest(groups=(asked,)), api_version=10).groups
    found = [(each.topic_id, each.partitions[0]) for each in group.topics]
    return [(id_, told.error_code or told.committed_offset) for id_, told in found]


def test_offsets_are_committed_and_fetched_by_id(brokers: Brokers) -> None:
    ours = id_of(brokers)
    unknown = ErrorCode.UNKNOWN_TOPIC_ID
    told = commit(brokers, STRANGE, ours, ZERO)
    assert told == [(STRANGE, unknown), (ours, ErrorCode.NONE), (ZERO, unknown)]
    assert fetch(brokers, STRANGE, ours) == [(ours, 7), (STRANGE, unknown)]
    assert fetch(brokers, everything=True) == [(ours, 7)]


@pytest.mark.parametrize(("by_id", "told"), [(True, ["t"]), (False, ["gone", "t"])])
def test_who_asks_for_all_by_id_is_not_told_of_a_topic_that_is_gone(
    by_id: bool, told: list[str]
) -> None:
    offset = CommittedOffset(offset=7, commit_timestamp_ms=1)
    known = {("gone", 0): offset, ("t", 0): offset}
    everything = OffsetFetchRequestGroup(group_id="g", topics=None)
    group = offsets.fetch(known, everything, {"t": STRANGE}.get, by_id=by_id)
    assert sorted(each.name for each in group.topics) == told


def test_a_topic_without_a_name_is_no_topic_where_they_have_names(brokers: Brokers) -> None:
    assert commit(brokers, ZERO, version=9) == [(ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
