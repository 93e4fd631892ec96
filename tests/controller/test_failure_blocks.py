"""Blocks as a broker's failure writes them, over several chunks: on the way that is fast, through
the log, and record by record. Also such as no sane controller writes.
"""

from random import Random
from uuid import UUID

import numpy as np
import pytest

from controller.metadata.apply import UnreplayableRecord, apply, apply_with_delta
from controller.metadata.changes import Change, decode_changes, encode_changes, record_count
from controller.metadata.image import MetadataImage
from controller.metadata.topics import NO_ROW, RowIndex, TopicImage
from quorum.core.types import OffsetAndEpoch
from tests.controller.plain_image import plain_partitions
from wire.batch import assign
from wire.message import replace
from wire.metadata_records import PartitionChangeRecord, PartitionRecord, TopicRecord
from wire.partition_block import grouped
from wire.partition_columns import NewPartitions, PartitionChanges, uuid_column

TOPICS = [UUID(int=n << 64 | n * 0x1234_5678_9ABC) for n in range(100, 103)]
A_TOPIC = 2_000  # partitions: three topics need two chunks
BROKERS = range(12)


def step(image: MetadataImage, *changes: Change) -> MetadataImage:
    return apply(image, changes, OffsetAndEpoch(image.at.offset + record_count(changes), 1))


def table(random: Random) -> MetadataImage:
    """Some partitions of the common shape, some in the side mapping."""
    image = MetadataImage()
    for number, topic_id in enumerate(TOPICS):
        made = []
        for index in range(A_TOPIC):
            replicas = tuple(random.sample(BROKERS, random.choice((1, 3, 3, 3, 4))))
            record = PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                leader_epoch=0,
                partition_epoch=0,
            )
            if random.random() < 0.01:
                record = replace(record, adding_replicas=replicas[:1])
            made.append(record)
        common = [record for record in made if NewPartitions.fits(record)]
        odd = [record for record in made if not NewPartitions.fits(record)]
        topic = TopicRecord(name=str(number), topic_id=topic_id)
        image = step(image, topic, NewPartitions.from_records(common), *odd)
    return image


def change(random: Random, image: MetadataImage, topic_id: UUID, index: int) -> Change:
    """Mostly one replica leaves; sometimes what cannot be: strangers, no order, twice the same."""
    state = image.partition(topic_id, index)
    assert state is not None
    gone = random.choice(state.replicas)
    isr: tuple[int, ...] | None = tuple(r for r in state.replicas if r != gone)
    lies = [(-1,), (-1, *state.replicas), (99,), state.replicas[:1] * 2, state.replicas[::-1], None]
    if random.random() < 0.1:
        isr = random.choice(lies)
    leader = random.choice((-2, -2, -1, 99, *state.replicas))
    return PartitionChangeRecord(
        partition_id=index,
        topic_id=topic_id,
        isr=isr,
        leader=leader,
        leader_recovery_state=random.choice((-1, -1, -1, 0, 1)),
    )


def followed(image: MetadataImage, *changes: Change) -> MetadataImage:
    """What a follower makes of the bytes in the log."""
    made = encode_changes(changes, timestamp_ms=0, metadata_version=25)
    for batch in decode_changes(assign(made, base_offset=image.at.offset, leader_epoch=1)):
        image, delta = apply_with_delta(image, batch)
        assert len(delta.rows_changed) == record_count(changes)
    return image


@pytest.mark.parametrize("seed", range(4))
def test_block_of_a_failure_means_its_records(seed: int) -> None:
    random = Random(seed)
    image = table(random)
    places = [(topic_id, index) for topic_id in TOPICS for index in range(A_TOPIC)]
    chosen = sorted(random.sample(places, 2_000))
    if seed % 2:
        random.shuffle(chosen)
    records = [change(random, image, *place) for place in chosen]
    block = grouped(PartitionChanges.from_records(records))  # type: ignore[arg-type]  # all of one kind
    expected = plain_partitions(step(image, *records))
    assert plain_partitions(step(image, block)) == expected, f"seed {seed}"
    assert plain_partitions(followed(image, block)) == expected, f"seed {seed}"
    assert plain_partitions(followed(image, *records)) == expected, f"seed {seed}"


@pytest.mark.parametrize(
    ("topic_id", "index"),
    [(TOPICS[0], -1), (TOPICS[0], A_TOPIC), (TOPICS[2], A_TOPIC), (UUID(int=5), 0)],
)
def test_block_that_names_what_is_not_there_is_refused(topic_id: UUID, index: int) -> None:
    image = table(Random(1))
    known = [PartitionChangeRecord(topic_id=TOPICS[0], partition_id=n, isr=()) for n in range(40)]
    lie = PartitionChangeRecord(topic_id=topic_id, partition_id=index, isr=())
    block = PartitionChanges.from_records([*known[:20], lie, *known[20:]])
    with pytest.raises(UnreplayableRecord):
        step(image, block)
    with pytest.raises(UnreplayableRecord):
        followed(image, block)


def test_partition_that_a_block_names_twice_is_changed_in_order() -> None:
    image = table(Random(1))
    records = [
        PartitionChangeRecord(topic_id=TOPICS[0], partition_id=n % 20, isr=(), leader=n)
        for n in range(60)
    ]
    expected = plain_partitions(step(image, *records))
    assert expected[TOPICS[0], 0].leader == 40
    assert plain_partitions(step(image, PartitionChanges.from_records(records))) == expected
    for changes in (records, [PartitionChanges.from_records(records)]):
        made = encode_changes(changes, timestamp_ms=0, metadata_version=25)
        for batch in decode_changes(assign(made, base_offset=image.at.offset, leader_epoch=1)):
            image_after, delta = apply_with_delta(image, batch)
            assert len(delta.rows_changed) == 20
        assert plain_partitions(image_after) == expected


def test_rows_are_found_among_strangers_beside_them() -> None:
    first, second = (UUID(int=n << 64 | 7) for n in (1, 2))  # half of their ids is the same
    other = UUID(int=8)
    rows = np.array([5, NO_ROW, 6], np.int32)
    index = RowIndex.of({id_: TopicImage(str(id_), id_, rows) for id_ in (first, other)})
    assert index is not None
    asked = [(first, 0), (second, 0), (first, 2), (first, 1), (first, 3), (first, -1), (other, 2)]
    found = index.find(
        uuid_column(id_ for id_, _ in asked), np.array([n for _, n in asked], np.int32)
    )
    assert found.tolist() == [5, NO_ROW, 6, NO_ROW, NO_ROW, NO_ROW, 6]
    assert len(index.find(uuid_column(()), np.array([], np.int32))) == 0
