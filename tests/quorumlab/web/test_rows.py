"""What a page is told of partitions adds up to what they are."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from controller.metadata.apply import apply
from controller.metadata.changes import Change
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import CHUNK_ROWS
from quorum.core.types import OffsetAndEpoch
from quorumlab.web.rows import Lists, Rows, changed_rows, every_row, gone_topics
from wire import metadata_records as records

MANY = CHUNK_ROWS + 10  # partitions of one topic, in two chunks
PLACES = st.tuples(st.integers(0, 2), st.integers(0, 3))


def topic_id(number: int) -> UUID:
    return UUID(int=number + 1)


def created(number: int, count: int) -> list[Change]:
    name, id_ = f"t{number}", topic_id(number)
    partitions = [
        records.PartitionRecord(
            topic_id=id_,
            partition_id=index,
            replicas=(1, 2, 3),
            isr=(1, 2, 3),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
        )
        for index in range(count)
    ]
    return [records.TopicRecord(name=name, topic_id=id_), *partitions]


def moved(number: int, index: int, leader: int, isr: tuple[int, ...]) -> Change:
    return records.PartitionChangeRecord(
        topic_id=topic_id(number), partition_id=index, leader=leader, isr=isr
    )


def applied(image: MetadataImage, *changes: Change) -> MetadataImage:
    return apply(image, changes, OffsetAndEpoch(image.at.offset + len(changes), 1))


class Told:
    """A page: it takes rows as `live.js` does."""

    def __init__(self) -> None:
        self.topics: dict[str, dict[int, Any]] = {}

    def take(self, rows: Rows, lists: Lists, gone: Sequence[str] = ()) -> None:
        for topic in gone:
            self.topics.pop(topic, None)
        for topic, told in rows.items():
            for index, (leader, epoch, replicas, isr) in told.items():
                row = (leader, epoch, lists.known[replicas], lists.known[isr])
                self.topics.setdefault(topic, {})[index] = row


def told_of(image: MetadataImage) -> dict[str, dict[int, Any]]:
    told, lists = Told(), Lists()
    told.take(every_row(image, lists), lists)
    return told.topics


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.integers(0, 2)),
        st.tuples(st.just("remove"), st.integers(0, 2)),
        st.tuples(st.just("move"), PLACES, st.integers(-1, 3)),
        st.tuples(st.just("tell")),
    ),
    max_size=20,
)


@given(STEPS)
def test_changes_add_up_to_the_image(steps: list[tuple[Any, ...]]) -> None:
    image = before = MetadataImage()
    told, lists = Told(), Lists()
    for step in [*steps, ("tell",)]:
        match step:
            case ("create", number) if image.topic(f"t{number}") is None:
                image = applied(image, *created(number, 4))
            case ("remove", number) if image.topic(f"t{number}") is not None:
                image = applied(image, records.RemoveTopicRecord(topic_id=topic_id(number)))
            case ("move", (number, index), leader) if image.topic(f"t{number}") is not None:
                isr = (leader,) if leader > 0 else (2, 3)
                image = applied(image, moved(number, index, leader, isr))
            case ("tell",):
                rows = changed_rows(before, image, lists)
                told.take(rows, lists, gone_topics(before, image))
                before = image
            case _:
                pass
    assert told.topics == told_of(image)


def test_only_what_changed_is_told() -> None:
    before = applied(MetadataImage(), *created(0, MANY))
    after = applied(before, moved(0, MANY - 1, 2, (2, 3)))
    lists = Lists()
    assert changed_rows(before, before, lists) == {}
    rows = changed_rows(before, after, lists)
    assert {topic: [*told] for topic, told in rows.items() if told} == {"t0": [MANY - 1]}


def test_topic_that_came_back_under_its_name_is_told_whole() -> None:
    before = applied(MetadataImage(), *created(0, 4))
    gone = applied(before, records.RemoveTopicRecord(topic_id=topic_id(0)))
    renamed = [records.TopicRecord(name="t0", topic_id=topic_id(1)), *created(1, 2)[1:]]
    told, lists = Told(), Lists()
    told.take(every_row(before, lists), lists)
    after = applied(gone, *renamed)
    told.take(changed_rows(before, after, lists), lists, gone_topics(before, after))
    assert sorted(told.topics["t0"]) == [0, 1]
