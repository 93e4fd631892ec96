"""Changes to and from batches."""

from controller.metadata.changes import (
    Change,
    decode_changes,
    encode_changes,
    offsets_of,
    record_count,
    split_changes,
)
from tests.controller.clusters import TOPIC, partition
from wire.batch import assign, read_header
from wire.control_records import LeaderChange, encode_control_batch
from wire.metadata_records import (
    NoOpRecord,
    PartitionChangeRecord,
    TopicRecord,
)
from wire.partition_columns import PartitionChanges


def block(rows: int) -> PartitionChanges:
    return PartitionChanges.from_records(
        [
            PartitionChangeRecord(partition_id=index, topic_id=TOPIC, isr=(1, 2), leader=2)
            for index in range(rows)
        ]
    )


def records(changes: tuple[Change, ...]) -> list[object]:
    single: list[object] = []
    for change in changes:
        single += change.records() if isinstance(change, PartitionChanges) else [change]
    return single


CHANGES: tuple[Change, ...] = (
    TopicRecord(name="t", topic_id=TOPIC),
    partition(0),
    block(300),
    NoOpRecord(),
)


def test_batch_comes_back_as_it_went() -> None:
    batch = encode_changes(CHANGES, timestamp_ms=77, metadata_version=25)
    batch = assign(batch, base_offset=40, leader_epoch=3)
    (committed,) = decode_changes(batch)
    assert records(committed.changes) == records(CHANGES)
    assert (committed.base_offset, committed.next_offset) == (40, 343)
    assert (committed.epoch, committed.timestamp_ms) == (3, 77)


def test_block_is_written_as_its_records() -> None:
    blocks = encode_changes((block(300),), timestamp_ms=1, metadata_version=25)
    singles = encode_changes(block(300).records(), timestamp_ms=1, metadata_version=25)
    assert blocks == singles


def test_versions_follow_the_metadata_version() -> None:
    plain = partition(0, directories=())
    old = encode_changes((plain,), timestamp_ms=1, metadata_version=16)
    new = encode_changes((plain,), timestamp_ms=1, metadata_version=25)
    assert len(old) < len(new), "records have no directories before 3.7-IV2"


def test_control_batches_are_left_out() -> None:
    control = encode_control_batch(
        [LeaderChange(leader_id=1, voters=(), granting_voters=())], timestamp_ms=1
    )
    data = encode_changes((NoOpRecord(),), timestamp_ms=1, metadata_version=25)
    log = assign(control + data, base_offset=0, leader_epoch=1)
    (committed,) = decode_changes(log)
    assert committed.base_offset == 1


def test_offsets_count_the_records_of_blocks() -> None:
    assert record_count(CHANGES) == 303
    assert [offset for offset, _ in offsets_of(CHANGES, end_offset=400)] == [97, 98, 99, 399]


def test_changes_are_split_within_blocks() -> None:
    parts = list(split_changes(CHANGES, 100))
    assert [record_count(part) for part in parts] == [100, 100, 100, 3]
    assert [row for part in parts for row in records(part)] == records(CHANGES)
    batches = [encode_changes(part, timestamp_ms=1, metadata_version=25) for part in parts]
    assert sum(read_header(batch).record_count for batch in batches) == 303


def test_changes_that_fill_their_parts_leave_no_empty_part() -> None:
    assert [record_count(part) for part in split_changes([block(200)], 100)] == [100, 100]
