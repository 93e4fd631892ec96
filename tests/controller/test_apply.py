"""The columnar image against a plain one, over random mixes of records and blocks."""

from random import Random
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.metadata import draft
from controller.metadata.apply import UnreplayableRecord, apply, apply_with_delta
from controller.metadata.changes import Change, CommittedBatch, record_count
from controller.metadata.image import MetadataImage, ResourceType
from controller.metadata.partitions import Rows
from quorum.core.types import OffsetAndEpoch
from tests.controller.plain_image import PlainImage, plain_partitions
from tests.examples import dear
from wire import metadata_records as records
from wire.message import replace
from wire.partition_columns import NewPartitions, PartitionChanges

TOPICS = [UUID(int=n << 64 | n) for n in range(100, 104)]
SAME_HALF = UUID(int=7 << 64 | 100)  # shares its lower half with the first topic
DIRECTORIES = [UUID(int=1000 + n) for n in range(5)]
ALIKE = UUID(int=9 << 64 | 99)
DIFFERENCES: list[dict[str, object]] = [
    {"replicas": (1, 3, 2)},
    {"replicas": (1, 2), "isr": (1, 2), "directories": (DIRECTORIES[0],) * 2},
    {"directories": (DIRECTORIES[0], DIRECTORIES[1], DIRECTORIES[0])},
    {"isr": (1, 2)},
    {"leader": 2},
    {"leader_epoch": 1},
    {"partition_epoch": 1},
    {"leader_recovery_state": 1},
]


def step(image: MetadataImage, *changes: Change) -> MetadataImage:
    end = image.at.offset + record_count(changes)
    return apply(image, changes, OffsetAndEpoch(end, 1))


def batch(image: MetadataImage, *changes: Change) -> CommittedBatch:
    end = image.at.offset + record_count(changes)
    return CommittedBatch(
        changes=changes, base_offset=image.at.offset, next_offset=end, epoch=1, timestamp_ms=0
    )


def partition(
    topic_id: UUID, index: int, replicas: tuple[int, ...] = (1, 2, 3), **others: object
) -> records.PartitionRecord:
    record = records.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
    )
    return replace(record, **others)


def topic(topic_id: UUID, name: str, partitions: int) -> list[Change]:
    created: list[Change] = [records.TopicRecord(name=name, topic_id=topic_id)]
    created += [partition(topic_id, index) for index in range(partitions)]
    return created


# --- random changes ---------------------------------------------------------------------------


brokers = st.integers(0, 9)
replica_lists = st.lists(brokers, min_size=1, max_size=10, unique=True).map(tuple)
# Made once: to make a strategy costs more than to draw from it.
maybe_replicas = st.none() | replica_lists
maybe_none_of_them = st.none() | st.just(()) | replica_lists
maybe_directories = st.just(()) | st.lists(
    st.sampled_from(DIRECTORIES), min_size=10, max_size=10
).map(tuple)


@st.composite
def partition_records(draw: st.DrawFn, topic_id: UUID, index: int) -> records.PartitionRecord:
    replicas = draw(replica_lists)
    isr = tuple(draw(st.permutations(replicas)))[: draw(st.integers(0, len(replicas)))]
    if draw(st.booleans()):
        isr = tuple(replica for replica in replicas if replica in isr)
    common = draw(st.booleans())
    return records.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=isr[0] if isr else -1,
        leader_epoch=draw(st.integers(0, 9)),
        partition_epoch=draw(st.integers(0, 9)),
        leader_recovery_state=draw(st.integers(0, 1)),
        adding_replicas=() if common else replicas[:1],
        directories=draw(maybe_directories)[: len(replicas)],
        eligible_leader_replicas=None if common else draw(maybe_replicas),
    )


@st.composite
def change_records(
    draw: st.DrawFn, topic_id: UUID, index: int, replicas: tuple[int, ...], small: bool
) -> records.PartitionChangeRecord:
    isr = st.none() | st.lists(st.sampled_from(replicas), unique=True, max_size=8).map(tuple)
    change = records.PartitionChangeRecord(
        partition_id=index,
        topic_id=topic_id,
        isr=draw(isr),
        leader=draw(st.sampled_from([-2, -1, *replicas])),
        leader_recovery_state=draw(st.sampled_from([-1, 0, 1])),
    )
    if small:
        return change
    return replace(
        change,
        replicas=draw(maybe_replicas),
        removing_replicas=draw(maybe_none_of_them),
        eligible_leader_replicas=draw(maybe_none_of_them),
        last_known_elr=draw(st.none() | st.just(())),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[list[Change]]:
    """Batches that can follow each other, told to a plain image as they are drawn."""
    plain = PlainImage()
    batches: list[list[Change]] = []
    for number in range(draw(st.integers(1, 6))):
        changes: list[Change] = []
        for _ in range(draw(st.integers(1, 4))):
            change = draw(next_change(plain, number))
            for one in change:
                plain.replay(one)
            changes += change
        batches.append(changes)
    return batches


@st.composite
def next_change(draw: st.DrawFn, plain: PlainImage, number: int) -> list[Change]:
    absent = [topic_id for topic_id in [*TOPICS, SAME_HALF] if topic_id not in plain.known]
    present = sorted(plain.topics)
    kinds = ["create"] * bool(absent) + ["remove", "more"] * bool(present)
    kinds += ["change", "block", "block"] * bool(plain.partitions)
    if not kinds:
        return [records.NoOpRecord()]
    kind = draw(st.sampled_from(kinds))
    if kind == "create":
        topic_id = draw(st.sampled_from(absent))
        indexes = range(draw(st.integers(0, 5)))
        made = [draw(partition_records(topic_id, index)) for index in indexes]
        return [records.TopicRecord(name=str(topic_id), topic_id=topic_id), *as_changes(draw, made)]
    if kind == "remove":
        return [records.RemoveTopicRecord(topic_id=draw(st.sampled_from(present)))]
    if kind == "more":
        topic_id = draw(st.sampled_from(present))
        return [draw(partition_records(topic_id, draw(st.integers(0, 6))))]
    keys = draw(st.lists(st.sampled_from(sorted(plain.partitions)), min_size=1, max_size=6))
    changes = [
        draw(change_records(*key, plain.partitions[key].replicas, small=kind == "block"))
        for key in keys
    ]
    if kind == "change":
        return list(changes[:1])
    return [PartitionChanges.from_records(changes)]


def as_changes(draw: st.DrawFn, made: list[records.PartitionRecord]) -> list[Change]:
    if made and all(map(NewPartitions.fits, made)) and draw(st.booleans()):
        return [NewPartitions.from_records(made)]
    return list(made)


def split(changes: list[Change]) -> list[Change]:
    singles: list[Change] = []
    for change in changes:
        if isinstance(change, (PartitionChanges, NewPartitions)):
            singles += change.records()
        else:
            singles.append(change)
    return singles


@dear(2)
@given(histories())
def test_image_equals_a_plain_one_after_any_history(history: list[list[Change]]) -> None:
    image, plain, first = MetadataImage(), PlainImage(), None
    for changes in history:
        image = step(image, *changes)
        for change in changes:
            plain.replay(change)
        if first is None:
            first = image, plain_partitions(image)
        assert plain_partitions(image) == plain.partitions
        assert {t.id: t.name for t in image.topics.by_id.values()} == plain.topics
        assert len(image.partitions) == len(plain.partitions)
    assert first is not None
    assert plain_partitions(first[0]) == first[1], "an older image has changed"


@dear(2)
@given(histories())
def test_block_means_its_records_one_by_one(history: list[list[Change]]) -> None:
    blocks = singles = MetadataImage()
    for changes in history:
        blocks, singles = step(blocks, *changes), step(singles, *split(changes))
        assert plain_partitions(blocks) == plain_partitions(singles)


@dear(2)
@given(histories())
def test_delta_names_everything_that_changed(history: list[list[Change]]) -> None:
    before = image = MetadataImage()
    total = None
    for changes in history:
        image, delta = apply_with_delta(image, batch(image, *changes))
        total = delta if total is None else total.then(delta)
    assert total is not None
    was, now = plain_partitions(before), plain_partitions(image)
    named = list(total.partitions_changed(image.partitions))
    assert len(named) == len(set(named))
    assert {key for key in now if now[key] != was.get(key)} <= set(named) <= set(now)
    assert set(total.topics_created) == set(image.topics.by_id)
    assert not total.topics_deleted, "created and deleted within is nothing"


@dear(2)
@given(histories(), brokers, st.randoms(use_true_random=False))
def test_many_rows_are_read_as_each_alone(
    history: list[list[Change]], broker_id: int, random: Random
) -> None:
    """Free rows, those of every shape, and those that differ in one thing; in any order."""
    image = MetadataImage()
    for changes in history:
        image = step(image, *changes)
    alike = partition(ALIKE, 0, directories=(DIRECTORIES[0],) * 3)
    different = [
        replace(alike, partition_id=index, **difference)
        for index, difference in enumerate([{}, *DIFFERENCES])
    ]
    image = step(image, records.TopicRecord(name="alike", topic_id=ALIKE), *different * 2)
    table = image.partitions
    order = list(range(table.end_row)) * 2
    random.shuffle(order)
    rows = np.array(order, np.int32)
    places = [table.place(row) for row in order]
    alone = [(*place, table.state(row)) for row, place in zip(order, places, strict=True) if place]
    assert list(table.partitions(rows)) == alone
    assert table.places(rows) == places
    assert table.has_replica(rows, broker_id).tolist() == [
        place is not None and broker_id in table.state(row).replicas
        for row, place in zip(order, places, strict=True)
    ]


@dear(2)
@given(histories(), brokers)
def test_rows_are_found_by_broker(history: list[list[Change]], broker_id: int) -> None:
    image = MetadataImage()
    for changes in history:
        image = step(image, *changes)
    plain = plain_partitions(image)
    table = image.partitions

    def places(rows: Rows) -> list[tuple[UUID, int]]:
        found = [table.place(row) for row in rows.tolist()]
        return sorted(place for place in found if place is not None)

    assert places(table.rows_with_replica(broker_id)) == sorted(
        key for key, state in plain.items() if broker_id in state.replicas
    )
    assert places(table.rows_with_isr_member(broker_id)) == sorted(
        key for key, state in plain.items() if broker_id in state.isr
    )
    assert places(table.rows_led_by(broker_id)) == sorted(
        key for key, state in plain.items() if state.leader == broker_id
    )
    assert places(table.rows_without_leader()) == sorted(
        key for key, state in plain.items() if state.leader == -1
    )


@pytest.mark.parametrize("as_block", [False, True])
def test_replica_with_the_number_of_nobody_is_kept_beside_the_columns(as_block: bool) -> None:
    """No sane controller writes it; what is in the log is read as it is."""
    odd = partition(TOPICS[0], 0, replicas=(-1, 2), isr=(2,), leader=2)
    made: Change = NewPartitions.from_records([odd]) if as_block else odd
    image = step(MetadataImage(), *topic(TOPICS[0], "a", 0), made)
    state = image.partition(TOPICS[0], 0)
    assert state is not None
    assert (state.replicas, state.isr, state.leader) == ((-1, 2), (2,), 2)


def test_blocks_without_rows_change_nothing() -> None:
    before = step(MetadataImage(), *topic(TOPICS[0], "a", 2))
    after = step(before, PartitionChanges.from_records([]), NewPartitions.from_records([]))
    assert plain_partitions(after) == plain_partitions(before)


@pytest.mark.parametrize("as_block", [False, True])
def test_directory_that_columns_cannot_number_is_kept_beside_them(
    as_block: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft, "DIRECTORIES_MAX", 4)  # three have a meaning, one is left
    made = [
        partition(TOPICS[0], index, replicas=(1,), directories=(DIRECTORIES[index],))
        for index in range(3)
    ]
    changes: list[Change] = [NewPartitions.from_records(made)] if as_block else [*made]
    image = step(MetadataImage(), *topic(TOPICS[0], "a", 0), *changes)
    assert len(image.partitions.directories) <= 4
    for index in range(3):
        state = image.partition(TOPICS[0], index)
        assert state is not None
        assert state.directories == (DIRECTORIES[index],)


# --- sharing ----------------------------------------------------------------------------------


def large_image() -> MetadataImage:
    image = step(MetadataImage(), *topic(TOPICS[0], "a", 6000))
    return step(image, *topic(TOPICS[1], "b", 4000))


def test_one_change_copies_one_chunk_and_only_its_state() -> None:
    before = large_image()
    record = records.PartitionChangeRecord(
        partition_id=5999, topic_id=TOPICS[0], isr=(1, 3), leader=3
    )
    after = step(before, record)
    shared = [
        old is new
        for old, new in zip(before.partitions.chunks, after.partitions.chunks, strict=True)
    ]
    assert shared == [True, False, True]
    old, new = before.partitions.chunks[1], after.partitions.chunks[1]
    assert new.replicas is old.replicas
    assert new.isr is not old.isr
    assert after.topics is before.topics
    assert after.partition(TOPICS[0], 5999) != before.partition(TOPICS[0], 5999)


def test_chunks_of_an_image_refuse_to_be_written() -> None:
    chunk = large_image().partitions.chunks[0]
    with pytest.raises(ValueError, match="read-only"):
        chunk.leader[0] = 5


def test_freed_rows_are_used_again() -> None:
    image = step(large_image(), records.RemoveTopicRecord(topic_id=TOPICS[0]))
    assert len(image.partitions) == 4000
    image = step(image, *topic(TOPICS[2], "c", 6000))
    assert image.partitions.end_row == 10_000
    assert len(image.partitions) == 10_000


# --- transactions, and what cannot be -----------------------------------------------------------


def test_transaction_shows_at_its_end() -> None:
    before = step(MetadataImage(), *topic(TOPICS[0], "a", 1))
    opened, delta = apply_with_delta(
        before,
        batch(before, records.BeginTransactionRecord(name="t"), *topic(TOPICS[1], "b", 1)),
    )
    assert delta.is_empty
    assert opened.topic("b") is not None
    assert opened.stable.topic("b") is None
    ended, delta = apply_with_delta(opened, batch(opened, records.EndTransactionRecord()))
    assert ended.stable is ended
    assert delta.topics_created == (TOPICS[1],)
    assert list(delta.partitions_changed(ended.partitions)) == [(TOPICS[1], 0)]


def test_aborted_transaction_leaves_nothing() -> None:
    before = step(MetadataImage(), *topic(TOPICS[0], "a", 1))
    opened = step(before, records.BeginTransactionRecord(), *topic(TOPICS[1], "b", 1))
    ended, delta = apply_with_delta(opened, batch(opened, records.AbortTransactionRecord()))
    assert delta.is_empty
    assert plain_partitions(ended) == plain_partitions(before)
    assert ended.at.offset == opened.at.offset + 1


def test_transaction_within_one_batch_is_published_with_what_surrounds_it() -> None:
    image, delta = apply_with_delta(
        MetadataImage(),
        batch(
            MetadataImage(),
            *topic(TOPICS[0], "a", 1),
            records.BeginTransactionRecord(),
            *topic(TOPICS[1], "b", 1),
            records.EndTransactionRecord(),
            *topic(TOPICS[2], "c", 1),
        ),
    )
    assert delta.topics_created == tuple(TOPICS[:3])
    assert image.stable is image


@pytest.mark.parametrize(
    "changes",
    [
        [partition(TOPICS[0], 0)],
        [records.RemoveTopicRecord(topic_id=TOPICS[0])],
        [*topic(TOPICS[0], "a", 1), records.TopicRecord(name="a", topic_id=TOPICS[1])],
        [records.PartitionChangeRecord(partition_id=0, topic_id=TOPICS[0])],
        [
            *topic(TOPICS[0], "a", 1),
            PartitionChanges.from_records(
                [records.PartitionChangeRecord(partition_id=1, topic_id=TOPICS[0])]
            ),
        ],
        [records.EndTransactionRecord()],
        [records.BeginTransactionRecord(), records.BeginTransactionRecord()],
        [records.UnregisterBrokerRecord(broker_id=1, broker_epoch=1)],
        [*topic(TOPICS[0], "a", 1), partition(TOPICS[0], 1 << 30)],
        [*topic(TOPICS[0], "a", 0), NewPartitions.from_records([partition(TOPICS[0], 1 << 30)])],
        [NewPartitions.from_records([partition(TOPICS[0], 0)])],
        [*topic(TOPICS[0], "a", 0), partition(TOPICS[0], 0, directories=(DIRECTORIES[0],))],
        [
            *topic(TOPICS[0], "a", 0),
            NewPartitions.from_records([partition(TOPICS[0], 0, directories=(DIRECTORIES[0],))]),
        ],
    ],
)
def test_log_that_cannot_be_is_not_applied(changes: list[Change]) -> None:
    with pytest.raises(ValueError):
        step(MetadataImage(), *changes)


# --- the other records ----------------------------------------------------------------------


def registration(broker_id: int, epoch: int, **others: object) -> records.RegisterBrokerRecord:
    record = records.RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=UUID(int=epoch),
        broker_epoch=epoch,
        end_points=(),
        features=(),
        rack=None,
    )
    return replace(record, **others)


def test_broker_life_follows_its_records() -> None:
    image = step(MetadataImage(), records.NoOpRecord(), registration(1, 7))
    assert image.brokers[1].registered_at_offset == 1
    assert not image.is_active(1)
    unfenced = step(
        image, records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1)
    )
    assert unfenced.is_active(1)
    leaving = step(
        unfenced,
        records.BrokerRegistrationChangeRecord(
            broker_id=1, broker_epoch=7, in_controlled_shutdown=1, log_dirs=(DIRECTORIES[0],)
        ),
    )
    assert not leaving.is_active(1)
    assert leaving.brokers[1].log_dirs == (DIRECTORIES[0],)
    assert not leaving.brokers[1].fenced
    gone = step(leaving, records.UnregisterBrokerRecord(broker_id=1, broker_epoch=7))
    assert not gone.brokers
    assert image.brokers[1].fenced, "an older image has changed"


def test_configs_and_features_are_set_and_removed() -> None:
    def config(value: str | None) -> records.ConfigRecord:
        return records.ConfigRecord(
            resource_type=ResourceType.TOPIC, resource_name="a", name="retention.ms", value=value
        )

    image = step(MetadataImage(), config("1"), config("2"))
    assert image.config(ResourceType.TOPIC, "a") == {"retention.ms": "2"}
    assert step(image, config(None)).configs == {}
    level = records.FeatureLevelRecord(name="metadata.version", feature_level=25)
    image, delta = apply_with_delta(image, batch(image, level))
    assert image.metadata_version == 25
    assert delta.features_changed == ("metadata.version",)
    assert step(image, replace(level, feature_level=0)).metadata_version == 1


def test_configs_go_with_their_topic() -> None:
    config = records.ConfigRecord(
        resource_type=ResourceType.TOPIC, resource_name="a", name="retention.ms", value="1"
    )
    image = step(MetadataImage(), *topic(TOPICS[0], "a", 1), config)
    assert step(image, records.RemoveTopicRecord(topic_id=TOPICS[0])).configs == {}


def test_producer_ids_only_grow() -> None:
    def block(next_id: int) -> records.ProducerIdsRecord:
        return records.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=next_id)

    image = step(MetadataImage(), block(1000))
    assert image.next_producer_id == 1000
    with pytest.raises(UnreplayableRecord):
        step(image, block(1000))
