"""Lines told in columns are those that are told one by one."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from quorumlab.inspection.batches import Batch, read_batches
from quorumlab.inspection.bulk import BulkText
from quorumlab.inspection.entries import Entry, TopicNames, as_json, as_text, entries
from quorumlab.inspection.selection import Selection, parse_range, parse_where
from tests.quorumlab.inspection.logs import START_MS, change, partition, topic, write_log
from wire.batch import assign, read_header
from wire.message import replace as changed_record
from wire.metadata_records import NoOpRecord, TopicRecord
from wire.partition_columns import NewPartitions, PartitionChanges

SELECTIONS = {
    "all": Selection(),
    "a type": Selection(types=frozenset({"PARTITION_CHANGE_RECORD"})),
    "a topic": Selection(topic="orders"),
    "no topic": Selection(topic="others"),
    "a partition": Selection(partition=77),
    "a broker": Selection(broker=3),
    "nobody": Selection(broker=9),
    "offsets within a block": Selection(offsets=parse_range("90..95")),
    "offsets from within on": Selection(offsets=parse_range("150..")),
    "times": Selection(times_ms=range(START_MS + 1000, START_MS + 2000)),
    "an expression": Selection(condition=parse_where("leader == 2 and 3 not in isr")),
    "another": Selection(condition=parse_where("topic == 'orders' and partition < 3")),
    "absent fields": Selection(condition=parse_where("leaderRecoveryState == 1 or 2 in replicas")),
    "several": Selection(types=frozenset({"PARTITION_RECORD"}), broker=2, partition=5),
}


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> list[Batch]:
    """Blocks with single records between them, of many shapes."""
    made = NewPartitions.from_records([partition(index) for index in range(100)])
    changed = PartitionChanges.from_records(
        [change(index, isr=(2, 3) if index % 3 else (2, 1), leader=2) for index in range(100)]
    )
    unclean = PartitionChanges.from_records(
        [change(index, isr=(1,), leader=1, leader_recovery_state=1) for index in range(40)]
    )
    target = write_log(
        tmp_path_factory.mktemp("bulk"),
        (topic(), made, NoOpRecord()),
        (changed, NoOpRecord(), unclean),
        (NoOpRecord(), partition(200)),
    )
    return [found for found in read_batches(target.segments[0]) if isinstance(found, Batch)]


def wanted_line(names: TopicNames, selection: Selection, tell: object, entry: Entry) -> str | None:
    is_wanted = selection.may_take(
        entry.type, entry.offset, entry.timestamp_ms
    ) and selection.takes(names.facts(entry))
    assert callable(tell)
    return str(tell(entry, names)) if is_wanted else None


@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS)
@pytest.mark.parametrize("is_json", [False, True], ids=["text", "json"])
def test_columns_say_what_records_say(
    batches: list[Batch], selection: Selection, is_json: bool
) -> None:
    names = TopicNames()
    line = partial(wanted_line, names, selection, as_json if is_json else as_text)
    bulk = BulkText(names, selection, line, is_json=is_json)
    told_in_bulk = 0
    for batch in batches:
        text = bulk.text(batch)
        one_by_one = []
        for entry in entries(batch):
            names.learn(entry)
            one_by_one.append(line(entry))
        if text is not None:
            told_in_bulk += 1
            assert text == "".join(f"{each}\n" for each in one_by_one if each is not None)
    assert told_in_bulk == 2


@pytest.mark.parametrize("offset", [950, 999, 99_950, 123_456_789])
@pytest.mark.parametrize("tell", [as_text, as_json], ids=["text", "json"])
def test_offsets_of_any_length_are_told(
    batches: list[Batch], offset: int, tell: Callable[[Entry, TopicNames], str]
) -> None:
    """In a text told in columns they are put together from thousands and the rest."""
    content = assign(batches[1].content, base_offset=offset, leader_epoch=1)
    batch = replace(batches[1], header=read_header(content), content=content)
    names = TopicNames()
    bulk = BulkText(names, Selection(), lambda e: tell(e, names), is_json=tell is as_json)
    text = bulk.text(batch)
    assert text == "".join(f"{tell(each, names)}\n" for each in entries(batch))


@pytest.mark.parametrize("names", [{}, {0: "orders"}, {0: "orders", 1: "trades"}], ids=len)
@pytest.mark.parametrize("tell", [as_text, as_json], ids=["text", "json"])
def test_topics_that_alternate_in_a_block_are_told(
    tmp_path: Path, names: dict[int, str], tell: Callable[[Entry, TopicNames], str]
) -> None:
    ids = [UUID(int=0xA0), UUID(int=0xB0)]
    changed = PartitionChanges.from_records(
        [
            changed_record(change(row, isr=(2, 3), leader=row % 4), topic_id=ids[row % 2])
            for row in range(90)
        ]
    )
    topics = [TopicRecord(name=name, topic_id=ids[at]) for at, name in names.items()]
    (_, batch) = read_batches(write_log(tmp_path, (*topics, changed)).segments[0])
    assert isinstance(batch, Batch)
    learned = TopicNames()
    bulk = BulkText(learned, Selection(), lambda e: tell(e, learned), is_json=tell is as_json)
    text = bulk.text(batch)
    assert text == "".join(f"{tell(each, learned)}\n" for each in entries(batch))


def test_records_without_directories_show_none(tmp_path: Path) -> None:
    """Version 0 of PartitionRecord, of a metadata.version before 17."""
    batch_of = write_log(tmp_path, (topic(), *map(partition, range(100))))
    (_, batch) = read_batches(batch_of.segments[0])
    assert isinstance(batch, Batch)
    names = TopicNames()
    bulk = BulkText(names, Selection(), lambda entry: as_text(entry, names), is_json=False)
    assert bulk.text(batch) == "".join(f"{as_text(each, names)}\n" for each in entries(batch))
