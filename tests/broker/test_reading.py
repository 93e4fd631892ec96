"""Fetch limits, ListOffsets, OffsetForLeaderEpoch, and what a follower takes of an answer."""

from typing import Any

import pytest

from broker.config import OWNER
from broker.partition.local_log import LocalLog
from broker.partition.partition import FollowerOf
from broker.replication.following import (
    Batches,
    FetchOn,
    Mismatch,
    TryLater,
    fetched_batches,
    follow,
    follower_high_watermark,
)
from quorum.core.effects import EpochStart
from quorum.core.log_state import LogState
from quorum.core.outbox import Outbox
from tests.broker.brokers import Brokers, batch_of, fetch_request
from wire.batch import Record, assign, build_batch, headers
from wire.errors import ErrorCode
from wire.messages.fetching import (
    EpochEndOffset,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

VALUE = b"x" * 100


@pytest.fixture
def brokers() -> Brokers:
    """One broker with a topic of two partitions of five batches each."""
    cluster = Brokers(1).start()
    cluster.create_topic("t", (1,), (1,))
    for n in range(5):
        for index in (0, 1):
            batch = batch_of(VALUE, timestamp_ms=1000 + 10 * n)
            cluster.produce(1, "t", index, batch)
    return cluster


def fetched(brokers: Brokers, **fields: Any) -> FetchedPartition:
    body = brokers.call(1, fetch_request("t", 0, fields.pop("offset", 0), **fields))
    data: FetchedPartition = body.responses[0].partitions[0]
    return data


def count(data: FetchedPartition) -> int:
    return sum(1 for _ in headers(data.records or b""))


# --- limits (KIP-74)


def test_a_fetch_stops_at_the_size_limit_of_the_partition(brokers: Brokers) -> None:
    size = len(batch_of(VALUE))
    assert count(fetched(brokers, partition_max_bytes=3 * size)) == 3
    assert count(fetched(brokers, partition_max_bytes=3 * size - 1)) == 2


def test_the_first_batch_comes_even_if_it_is_larger_than_the_limit(brokers: Brokers) -> None:
    assert count(fetched(brokers, partition_max_bytes=1)) == 1
    assert count(fetched(brokers, max_bytes=1)) == 1


def test_the_limit_of_the_answer_counts_over_partitions(brokers: Brokers) -> None:
    size = len(batch_of(VALUE))
    partitions = tuple(
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        for index in (1, 0)
    )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=6 * size,
        topics=(FetchTopic(topic="t", partitions=partitions),),
    )

    first, second = brokers.call(1, request).responses[0].partitions

    assert (first.partition_index, count(first)) == (1, 5)
    assert (second.partition_index, count(second)) == (0, 1)


def test_a_fetch_waits_for_as_many_bytes_as_it_wants(brokers: Brokers) -> None:
    size = len(batch_of(VALUE))
    request = fetch_request("t", 0, 4, max_wait_ms=1000, min_bytes=2 * size)
    token = brokers.ask(1, request)
    assert token not in brokers.answers

    brokers.produce(1, "t", 0, batch_of(VALUE))

    assert count(brokers.answer(token).responses[0].partitions[0]) == 2


@pytest.mark.parametrize("offset", [-1, 6, 1000])
def test_an_offset_outside_the_log_is_out_of_range(brokers: Brokers, offset: int) -> None:
    assert fetched(brokers, offset=offset).error_code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_end_of_the_log_is_in_range(brokers: Brokers) -> None:
    assert fetched(brokers, offset=5).error_code is ErrorCode.NONE


def test_a_diverging_reader_is_told_where_its_epoch_ended(brokers: Brokers) -> None:
    brokers.change("t", 0, leader=1)
    brokers.change("t", 0, leader=1)
    brokers.produce(1, "t", 0, batch_of(VALUE))

    data = fetched(brokers, offset=6, last_fetched_epoch=1)

    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 5)
    assert data.records == b""


# --- ListOffsets


def listed(
    brokers: Brokers, timestamp: int, *, replica_id: int = -1, index: int = 0
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=0,
        topics=(ListOffsetsTopic(name="t", partitions=(asked,)),),
        timeout_ms=1000,
    )
    result: ListOffsetsPartitionResponse = brokers.call(1, request).topics[0].partitions[0]
    return result


@pytest.mark.parametrize(
    ("timestamp", "offset", "found_ms"),
    [
        (-1, 5, -1),  # latest
        (-2, 0, -1),  # earliest
        (-4, 0, -1),  # earliest local
        (-3, 4, 1040),  # largest timestamp
        (0, 0, 1000),
        (1011, 2, 1020),
        (1040, 4, 1040),
        (1041, -1, -1),
    ],
)
def test_offsets_are_found_by_time(
    brokers: Brokers, timestamp: int, offset: int, found_ms: int
) -> None:
    result = listed(brokers, timestamp)
    assert (result.error_code, result.offset, result.timestamp) == (
        ErrorCode.NONE,
        offset,
        found_ms,
    )


@pytest.mark.parametrize("timestamp", [-6, -100])
def test_a_special_time_that_nobody_knows_is_refused(brokers: Brokers, timestamp: int) -> None:
    assert listed(brokers, timestamp).error_code is ErrorCode.UNSUPPORTED_VERSION


def test_the_largest_timestamp_may_lie_anywhere_in_the_log(brokers: Brokers) -> None:
    brokers.produce(1, "t", 0, batch_of(VALUE, timestamp_ms=1_000_999))
    brokers.produce(1, "t", 0, batch_of(VALUE, timestamp_ms=3))

    result = listed(brokers, -3)

    assert (result.offset, result.timestamp) == (5, 1_000_999)


def test_the_largest_timestamp_is_found_among_those_to_come(brokers: Brokers) -> None:
    for timestamp_ms in (2_000_000, 2_000_500, 2_000_200):
        brokers.produce(1, "t", 0, batch_of(VALUE, timestamp_ms=timestamp_ms))

    result = listed(brokers, -3)

    assert brokers.now_ms < 2_000_000
    assert (result.offset, result.timestamp) == (6, 2_000_500)


def test_offsets_of_several_partitions_are_told_at_once(brokers: Brokers) -> None:
    asked = tuple(
        ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        for index, timestamp in ((9, -1), (0, 1011), (0, -1))
    )
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=(ListOffsetsTopic(name="t", partitions=asked),),
        timeout_ms=1000,
    )
    (topic,) = brokers.call(1, request).topics
    assert [each.offset for each in topic.partitions] == [-1, 2, 5]


def test_an_empty_log_has_no_largest_timestamp() -> None:
    brokers = Brokers(1).start()
    brokers.create_topic("t", (1,))
    assert listed(brokers, -3).offset == -1


def test_an_unknown_partition_is_refused(brokers: Brokers) -> None:
    assert listed(brokers, -1, index=9).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_latest_is_the_high_watermark_for_consumers_and_the_end_for_replicas() -> None:
    brokers = Brokers(3).start()
    brokers.create_topic("t", (1, 2, 3))
    brokers.cut |= {(2, 1), (3, 1)}
    brokers.run(600)
    brokers.produce(1, "t", 0, batch_of(VALUE), acks=1)

    assert listed(brokers, -1).offset == 0
    assert listed(brokers, -1, replica_id=2).offset == 1


def test_a_new_leader_does_not_say_an_offset_that_went_back() -> None:
    """Its high watermark may be behind what consumers have seen of the old leader."""
    brokers = Brokers(3).start()
    brokers.create_topic("t", (2, 1, 3))
    brokers.cut.add((3, 2))
    brokers.run(600)
    brokers.produce(2, "t", 0, batch_of(VALUE), acks=1)
    assert brokers.ends("t", 0)[1] == (1, 0)
    brokers.cut |= {(2, 1), (3, 1)}

    brokers.change("t", 0, leader=1)

    assert listed(brokers, -1).error_code is ErrorCode.OFFSET_NOT_AVAILABLE
    assert listed(brokers, -2).error_code is ErrorCode.NONE
    brokers.cut.clear()
    brokers.run(2000)
    assert listed(brokers, -1).offset == 1


# --- OffsetForLeaderEpoch


@pytest.mark.parametrize(
    ("epoch", "expected"), [(0, (0, 5)), (1, (0, 5)), (2, (2, 6)), (3, (-1, -1))]
)
def test_an_epoch_ends_where_the_next_one_begins(epoch: int, expected: tuple[int, int]) -> None:
    brokers = Brokers(1).start()
    brokers.create_topic("t", (1,))
    for _ in range(5):
        brokers.produce(1, "t", 0, batch_of(VALUE))
    brokers.kill(1)
    brokers.change("t", 0, leader=1)  # epoch 1 writes nothing
    brokers.change("t", 0, leader=1)
    brokers.start(1)
    brokers.produce(1, "t", 0, batch_of(VALUE))
    asked = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        topics=(OffsetForLeaderTopic(topic="t", partitions=(asked,)),)
    )

    found = brokers.call(1, request).topics[0].partitions[0]

    assert (found.leader_epoch, found.end_offset) == expected


# --- a follower's part


def at(offset: int, *values: bytes, epoch: int = 1) -> bytes:
    return assign(batch_of(*values), base_offset=offset, leader_epoch=epoch)


def test_a_follower_takes_whole_batches_that_continue_its_log() -> None:
    records = at(5, b"a", b"b") + at(7, b"c")
    taken = fetched_batches(records + at(8, b"d")[:-1], end_offset=5, leader_epoch=1)

    assert isinstance(taken, Batches)
    assert taken.records == records
    assert [header.base_offset for header in taken.headers] == [5, 7]


def test_a_follower_appends_at_its_end_or_behind_it() -> None:
    """Behind it, if compaction has left nothing in between at its leader."""
    assert isinstance(fetched_batches(at(4, b"a"), end_offset=5, leader_epoch=1), Mismatch)
    taken = fetched_batches(at(6, b"a"), end_offset=5, leader_epoch=1)
    assert isinstance(taken, Batches)
    assert [header.base_offset for header in taken.headers] == [6]


def test_a_follower_takes_nothing_of_a_later_epoch_than_it_follows() -> None:
    records = at(5, b"a", epoch=1) + at(6, b"b", epoch=2)
    taken = fetched_batches(records, end_offset=5, leader_epoch=1)
    assert isinstance(taken, Batches)
    assert len(taken.headers) == 1


def test_a_follower_refuses_a_damaged_batch() -> None:
    records = bytearray(at(5, b"a"))
    records[-1] ^= 1
    assert isinstance(fetched_batches(bytes(records), end_offset=5, leader_epoch=1), TryLater)


def test_a_follower_refuses_a_marker_that_says_no_end() -> None:
    batch = build_batch(
        [Record(key=b"\0\0\0")],
        timestamp_ms=1,
        producer_id=7,
        producer_epoch=0,
        is_control=True,
        is_transactional=True,
    )
    records = assign(batch, base_offset=5, leader_epoch=1)
    assert isinstance(fetched_batches(records, end_offset=5, leader_epoch=1), TryLater)


@pytest.mark.parametrize(("leader", "expected"), [(7, 7), (2, 3), (20, 10), (-1, 3)])
def test_a_follower_believes_the_leaders_high_watermark_within_its_log(
    leader: int, expected: int
) -> None:
    assert follower_high_watermark(leader, start_offset=3, end_offset=10) == expected


@pytest.mark.parametrize(("leaders_start", "kept"), [(11, (9, 12)), (12, (12, 12)), (13, (13, 13))])
def test_a_follower_begins_anew_where_its_leader_has_let_go_of_all_that_they_share(
    brokers: Brokers, leaders_start: int, kept: tuple[int, int]
) -> None:
    """Records may be deleted up to an offset within a batch, at which a log cannot be cut."""
    partition = brokers.partition(1, "t", 0)
    state = LogState(
        log="t-0", start_offset=9, end_offset=14, epochs=(EpochStart(epoch=0, start_offset=9),)
    )
    partition.log = LocalLog(state, Outbox(OWNER))
    partition.role = FollowerOf(leader_id=2, leader_epoch=1, partition_epoch=1, is_in_sync=True)
    told = FetchedPartition(
        partition_index=0,
        log_start_offset=leaders_start,
        diverging_epoch=EpochEndOffset(epoch=0, end_offset=12),
        records=b"",
    )
    assert follow(partition, told) == FetchOn()
    assert (partition.log.start_offset, partition.log.end_offset) == kept
