"""The state after any offset is the same from a kept state as from the log's start."""

from dataclasses import replace
from pathlib import Path

import pytest

from controller.metadata.changes import Change
from quorumlab.inspection.batches import Batch
from quorumlab.inspection.states import Moment, Replay, replay
from quorumlab.inspection.stream import target_batches
from quorumlab.inspection.target import Target, find_target, snapshot_id
from quorumlab.web.positions import Positions
from tests.quorumlab.inspection.logs import (
    SEGMENT,
    TOPIC,
    broker,
    change,
    content,
    partition,
    topic,
)
from tests.quorumlab.inspection.logs import write_log as written
from tests.quorumlab.web.test_rows import told_of

GOLDEN = Path(__file__).parents[2] / "golden"

CREATED: list[Change] = [topic(), partition(0), partition(1)]
MOVED: list[list[Change]] = [
    [change(index, leader=leader), change(1 - index, isr=(leader, 3))]
    for index, leader in [(0, 2), (1, 2), (0, 1), (1, 3), (0, 3)]
]
BATCHES: list[list[Change]] = [[broker(1), broker(2), broker(3)], CREATED, *MOVED]
LAST = 2 * len(MOVED) + 6  # the first record is the leader's


def seen(state: Replay) -> object:
    image = state.image
    return image.at, {**image.brokers}, [*image.partitions_of(TOPIC)], state.timestamp_ms


@pytest.mark.parametrize("records_between", [1, 3, 1000])
def test_every_offset(tmp_path: Path, records_between: int) -> None:
    target = written(tmp_path, *BATCHES)
    positions = Positions(target, records_between=records_between)
    for offset in [*range(-1, LAST + 1), *reversed(range(-1, LAST + 1))]:
        state = positions.after(offset)
        assert state.image.at.offset == offset + 1
        assert seen(state) == seen(replay(target, Moment(offset=offset)))
        entries = [entry.offset for entry, _ in positions.entries_until(offset)]
        assert entries[-1:] == [offset][: offset + 1]
        assert entries == [*range(offset + 1 - len(entries), offset + 1)]


def test_log_that_grows(tmp_path: Path) -> None:
    target = written(tmp_path, *BATCHES[:3])
    positions = Positions(target, records_between=1)
    assert positions.after(LAST).image.at.offset == 9
    (tmp_path / SEGMENT).write_bytes(content(*BATCHES))
    after = positions.after(LAST)
    assert seen(after) == seen(replay(target, Moment()))
    assert after.image.at.offset == LAST + 1


def test_log_that_begins_behind_a_snapshot(tmp_path: Path) -> None:
    """As a live log is copied: its newest snapshot, and the batches from its end on."""
    log = find_target(str(GOLDEN / "kraft3/node-3"))
    assert isinstance(log, Target)
    end, _ = snapshot_id(log.snapshots[-1])
    batches = [each for each in target_batches(log) if isinstance(each, Batch)]
    kept = [each.content for each in batches if each.header.base_offset >= end]
    path = tmp_path / f"{end:020}.log"
    path.write_bytes(b"".join(kept))
    positions = Positions(replace(log, segments=(path,)), records_between=1)
    assert kept
    assert positions.first == end - 1
    for offset in range(end - 1, batches[-1].header.next_offset):
        expected = replay(log, Moment(offset=offset))
        assert told_of(positions.after(offset).image) == told_of(expected.image)
        assert positions.after(offset).image.at == expected.image.at
    assert positions.after(3).image.at.offset == end  # the nearest there is


def test_names_are_known_where_the_topic_was_created_long_before(tmp_path: Path) -> None:
    positions = Positions(written(tmp_path, *BATCHES), records_between=1)
    positions.after(LAST)
    *_, (entry, names) = positions.entries_until(LAST)
    assert names.facts(entry)["topic"] == "orders"
