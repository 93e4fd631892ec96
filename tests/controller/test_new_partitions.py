"""Many partitions of a topic at once are what they would be one by one."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decisions.new_topics import new_partitions
from controller.metadata.changes import Change
from tests.controller.clusters import cluster, registered
from wire.metadata_records import PartitionRecord
from wire.partition_columns import NewPartitions

TOPIC = UUID(int=7)
IMAGE = cluster(*range(1, 41), registered(41, fenced=True))


def told(changes: list[Change]) -> list[PartitionRecord]:
    found: list[PartitionRecord] = []
    for change in changes:
        match change:
            case NewPartitions():
                found += change.records()
            case PartitionRecord():
                found.append(change)
            case _:
                pytest.fail(f"{change} is no partition")
    return sorted(found, key=lambda record: record.partition_id)


def one_by_one(replicas: list[tuple[int, ...]], first: int) -> list[PartitionRecord]:
    return [
        record
        for number, brokers in enumerate(replicas, first)
        for record in told(new_partitions(IMAGE, TOPIC, [brokers], first=number))
    ]


@given(
    st.lists(
        st.sampled_from([(1, 2, 3), (2, 3, 1), (41, 5), (9,), (3, 41, 7)]),
        min_size=1,
        max_size=200,
    ),
    st.integers(0, 1000),
)
def test_bulk_says_the_same_as_one_by_one(replicas: list[tuple[int, ...]], first: int) -> None:
    assert told(new_partitions(IMAGE, TOPIC, replicas, first=first)) == one_by_one(replicas, first)


def test_many_partitions_are_one_block() -> None:
    [block] = new_partitions(IMAGE, TOPIC, [(1, 2), (2, 3)] * 500)
    assert isinstance(block, NewPartitions)


def test_more_replicas_than_a_row_holds_are_records() -> None:
    """And so are few partitions."""
    wide = [tuple(range(1, 41))] * 100
    assert told(new_partitions(IMAGE, TOPIC, wide)) == one_by_one(wide, 0)
    assert all(isinstance(each, PartitionRecord) for each in new_partitions(IMAGE, TOPIC, wide))
    few = new_partitions(IMAGE, TOPIC, [(1, 2)] * 10)
    assert all(isinstance(each, PartitionRecord) for each in few)
