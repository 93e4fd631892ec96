"""Blocks of partition records: the same bytes and the same meaning as record by record."""

from collections.abc import Sequence
from dataclasses import replace as replace_columns
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wire.batch import (
    HEADER_BYTES,
    CorruptBatch,
    Record,
    build_batch,
    data_batch,
    read_header,
    records_of,
    write_header,
)
from wire.control_records import KRaftVersion, encode_control_batch
from wire.foreign_records import ForeignRecord, kept_record
from wire.message import replace
from wire.metadata_records import (
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    encode_record,
)
from wire.partition_block import (
    Change,
    NewPartitions,
    PartitionBlock,
    PartitionChanges,
    counted,
    decode,
    encode,
    grouped,
)
from wire.partition_columns import REPLICAS_MAX, joined, take
from wire.varint import Malformed

NOW_MS = 1_700_000_000_000
TOPICS = [UUID(int=number * 0x1234_5678_9ABC_DEF0_1357) for number in range(1, 4)]

brokers = st.lists(st.integers(0, 2**31 - 1), max_size=4).map(tuple)
many_brokers = st.lists(st.integers(0, 99), min_size=9, max_size=12).map(tuple)
changes = st.builds(
    PartitionChangeRecord,
    partition_id=st.integers(0, 2**31 - 1),
    topic_id=st.sampled_from(TOPICS),
    isr=st.none() | brokers,
    leader=st.sampled_from([-2, -1, 0, 7]),
    leader_recovery_state=st.sampled_from([-1, 0, 1]),
)
odd_changes = st.builds(
    PartitionChangeRecord,
    partition_id=st.integers(0, 9),
    topic_id=st.sampled_from(TOPICS),
    isr=st.none() | many_brokers,
    replicas=st.none() | brokers,
    eligible_leader_replicas=st.none() | brokers,
    directories=st.none() | st.just(tuple(TOPICS)),
)
partitions = st.builds(
    PartitionRecord,
    partition_id=st.integers(0, 2**31 - 1),
    topic_id=st.sampled_from(TOPICS),
    replicas=brokers,
    isr=brokers,
    leader=st.integers(-1, 99),
    leader_epoch=st.integers(0, 9),
    partition_epoch=st.integers(0, 9),
    directories=st.lists(st.sampled_from(TOPICS), max_size=4).map(tuple),
)
odd_partitions = st.builds(
    PartitionRecord,
    partition_id=st.integers(0, 9),
    topic_id=st.sampled_from(TOPICS),
    replicas=brokers,
    isr=brokers,
    removing_replicas=brokers,
    adding_replicas=brokers,
    leader=st.just(1),
    leader_recovery_state=st.sampled_from([0, 1]),
    leader_epoch=st.just(1),
    partition_epoch=st.just(1),
    last_known_elr=st.none() | brokers,
)
some_record = changes | odd_changes | partitions | odd_partitions | st.just(NoOpRecord())


def runs_of(record: st.SearchStrategy[MetadataRecord]) -> st.SearchStrategy[list[MetadataRecord]]:
    """Records among which some shapes come in runs, as they do in a grouped block."""
    run = st.tuples(record, st.sampled_from([1, 1, 2, 15, 16, 30, 70])).map(repeated)
    return st.lists(run, min_size=1, max_size=5).map(concatenated)


def concatenated(parts: list[list[MetadataRecord]]) -> list[MetadataRecord]:
    return [record for part in parts for record in part]


def repeated(run: tuple[MetadataRecord, int]) -> list[MetadataRecord]:
    record, count = run
    if not isinstance(record, PartitionChangeRecord | PartitionRecord):
        return [record] * count
    return [moved(record, partition) for partition in range(count)]


def moved(record: MetadataRecord, partition: int) -> MetadataRecord:
    assert isinstance(record, PartitionChangeRecord | PartitionRecord)
    return replace(record, partition_id=partition)


def one_by_one(records: Sequence[MetadataRecord], metadata_version: int = 25) -> bytes:
    values = [encode_record(record, metadata_version=metadata_version) for record in records]
    return data_batch(values, timestamp_ms=NOW_MS)


def flat(found: Sequence[Change]) -> list[MetadataRecord]:
    return [
        record
        for change in found
        for record in (change.records() if isinstance(change, PartitionBlock) else (change,))
    ]


def change(partition: int, **fields: object) -> PartitionChangeRecord:
    values = {"isr": (1, 2), "leader": 1, **fields}
    return PartitionChangeRecord(partition_id=partition, topic_id=TOPICS[0], **values)  # type: ignore[arg-type]  # fields by name


# --- block = record by record ---------------------------------------------------------------


@given(st.lists(changes, max_size=30))
def test_changes_are_their_records(records: list[PartitionChangeRecord]) -> None:
    assert PartitionChanges.from_records(records).records() == tuple(records)


@given(st.lists(partitions, max_size=30))
def test_new_partitions_are_their_records(records: list[PartitionRecord]) -> None:
    assert NewPartitions.from_records(records).records() == tuple(records)


@given(runs_of(changes), st.sampled_from([16, 22, 25]))
def test_block_of_changes_has_the_bytes_of_its_records(
    records: list[PartitionChangeRecord], metadata_version: int
) -> None:
    block = PartitionChanges.from_records(records)
    batch = encode([block], timestamp_ms=NOW_MS, metadata_version=metadata_version)
    assert batch == one_by_one(records, metadata_version)


@given(runs_of(partitions))
def test_block_of_new_partitions_has_the_bytes_of_its_records(
    records: list[PartitionRecord],
) -> None:
    block = NewPartitions.from_records(records)
    assert encode([block], timestamp_ms=NOW_MS) == one_by_one(records)


@given(runs_of(changes), runs_of(partitions))
def test_records_and_blocks_share_a_batch_in_order(
    changed: list[PartitionChangeRecord], created: list[PartitionRecord]
) -> None:
    mixed: list[Change] = [
        NoOpRecord(),
        NewPartitions.from_records(created),
        NoOpRecord(),
        PartitionChanges.from_records(changed),
    ]
    batch = encode(mixed, timestamp_ms=NOW_MS)
    assert batch == one_by_one(flat(mixed))
    assert flat(list(decode(batch))) == flat(mixed)


@given(runs_of(some_record), st.sampled_from([bytes, memoryview]))
def test_decoded_changes_are_the_records_in_order(
    records: list[MetadataRecord], container: type
) -> None:
    batch = container(one_by_one(records))
    assert flat(list(decode(batch))) == records
    told = [type(record) for record, count in counted(batch) for _ in range(count)]
    assert told == [type(record) for record in records]


@given(runs_of(partitions), st.sampled_from([16, 17, 22]))
def test_older_partition_records_are_read(
    records: list[PartitionRecord], metadata_version: int
) -> None:
    if metadata_version == 16:
        block = NewPartitions.from_records(records)
        without = np.zeros_like(block.directory_counts)
        records = list(replace_columns(block, directory_counts=without).records())
    batch = one_by_one(records, metadata_version)
    assert flat(list(decode(batch))) == records
    block = NewPartitions.from_records(records)
    assert encode([block], timestamp_ms=NOW_MS, metadata_version=metadata_version) == batch


def test_version_without_directories_refuses_them() -> None:
    record = PartitionRecord(
        partition_id=0,
        topic_id=TOPICS[0],
        replicas=(1,),
        isr=(1,),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=(TOPICS[1],),
    )
    for count in (1, 20):
        with pytest.raises(ValueError, match="version 0 has no directories"):
            encode(
                [NewPartitions.from_records([record] * count)],
                timestamp_ms=NOW_MS,
                metadata_version=16,
            )


# --- large batches --------------------------------------------------------------------------


def test_offset_deltas_of_every_width_are_the_same() -> None:
    records = [change(partition) for partition in range(9_000)]  # one, two and three bytes
    block = PartitionChanges.from_records(records)
    batch = encode([block], timestamp_ms=NOW_MS)
    assert batch == one_by_one(records)
    (found,) = decode(batch)
    assert isinstance(found, PartitionChanges)
    assert found.records() == tuple(records)


def test_an_empty_block_is_no_record() -> None:
    empty = PartitionChanges.from_records([])
    noop = encode([empty, NoOpRecord()], timestamp_ms=NOW_MS)
    assert list(decode(noop)) == [NoOpRecord()]


def test_grouping_makes_one_block_of_shapes_that_alternate() -> None:
    records = [change(partition, leader=-2 if partition % 2 else 1) for partition in range(200)]
    block = PartitionChanges.from_records(records)
    ordered = grouped(block)
    assert sorted(r.partition_id for r in ordered.records()) == list(range(200))
    (found,) = decode(encode([ordered], timestamp_ms=NOW_MS))
    assert isinstance(found, PartitionChanges)
    assert found.records() == ordered.records()


# --- what a block must not swallow ----------------------------------------------------------


def test_partition_named_twice_comes_as_records() -> None:
    records = [change(partition % 20) for partition in range(40)]
    found = list(decode(one_by_one(records)))
    assert found == records


def test_partitions_of_two_topics_share_a_block() -> None:
    records = [
        PartitionChangeRecord(partition_id=partition, topic_id=topic, isr=(1,))
        for topic in TOPICS
        for partition in range(20)
    ]
    assert [type(found) for found in decode(one_by_one(records))] == [PartitionChanges]


def test_unknown_tagged_field_in_a_run_is_kept_with_all_of_its_record() -> None:
    plain = [change(partition) for partition in range(30)]
    values = [encode_record(record) for record in plain]
    values[17] = values[17][:23] + b"\x03" + values[17][24:] + bytes.fromhex("63 01 ff")
    batch = data_batch(values, timestamp_ms=NOW_MS)
    found = flat(list(decode(batch)))
    assert isinstance(found[17], ForeignRecord)
    assert (found[17].value, found[17].known) == (values[17], plain[17])
    assert found[:17] + found[18:] == plain[:17] + plain[18:]


@given(st.data())
def test_changed_byte_means_the_same_as_to_the_record_codec(data: st.DataObject) -> None:
    """Any byte of a run may be strange: both codecs then agree on records or on refusal."""
    batch = bytearray(one_by_one([change(partition) for partition in range(70)]))
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(HEADER_BYTES, len(batch) - 1))] = data.draw(st.integers(0, 255))
    assert outcome(lambda: flat(list(decode(batch)))) == outcome(
        lambda: [kept_record(record.value or b"") for record in records_of(batch)]
    )


def outcome(read: object) -> object:
    assert callable(read)
    try:
        return read()
    except Malformed:
        return Malformed


@settings(max_examples=20)
@given(runs_of(changes | partitions))
def test_truncated_batch_is_corrupt(records: list[MetadataRecord]) -> None:
    batch = one_by_one(records)
    for end in range(0, len(batch), max(1, len(batch) // 50)):
        with pytest.raises(CorruptBatch):
            list(decode(batch[:end]))
        shortened = bytearray(batch[: max(end, HEADER_BYTES)])
        write_header(shortened, read_header(batch))
        with pytest.raises(Malformed):
            list(decode(shortened))


def test_bytes_behind_the_last_record_are_corrupt() -> None:
    batch = bytearray(one_by_one([change(partition) for partition in range(20)]) + b"\0")
    write_header(batch, read_header(batch))
    with pytest.raises(CorruptBatch, match="behind the last record"):
        list(decode(batch))


def test_unknown_records_are_kept_and_missing_values_refused() -> None:
    (found,) = decode(data_batch([b"\x01\x06\x00\x00"], timestamp_ms=NOW_MS))
    assert isinstance(found, ForeignRecord)
    assert (found.value, found.known) == (b"\x01\x06\x00\x00", None)
    with pytest.raises(Malformed, match="without a value"):
        list(decode(build_batch([Record()], timestamp_ms=NOW_MS)))


def test_control_batch_holds_no_changes() -> None:
    batch = encode_control_batch([KRaftVersion(kraft_version=1)], timestamp_ms=NOW_MS)
    assert list(decode(batch)) == []


# --- blocks as values -----------------------------------------------------------------------


def test_rows_are_taken_and_joined() -> None:
    records = [change(partition) for partition in range(5)]
    block = PartitionChanges.from_records(records)
    picked = take(block, np.array([4, 0]))
    assert picked.records() == (records[4], records[0])
    assert joined([picked, take(block, slice(1, 2))]).records() == (
        records[4],
        records[0],
        records[1],
    )


def test_records_that_change_nothing_are_kept_in_a_block() -> None:
    records = [PartitionChangeRecord(partition_id=p, topic_id=TOPICS[0]) for p in range(3)]
    assert PartitionChanges.from_records(records).records() == tuple(records)


@pytest.mark.parametrize("size", [REPLICAS_MAX, REPLICAS_MAX + 1])
def test_more_than_eight_replicas_do_not_fit(size: int) -> None:
    assert PartitionChanges.fits(change(0, isr=tuple(range(size)))) is (size <= REPLICAS_MAX)


def test_columns_of_different_lengths_are_refused() -> None:
    block = PartitionChanges.from_records([change(0), change(1)])
    with pytest.raises(AssertionError):
        replace_columns(block, partition_ids=block.partition_ids[:1])
