"""The state at a place, from a snapshot or from the first record on, and what differs in two."""

from dataclasses import replace
from pathlib import Path

import pytest

from quorumlab.inspection.states import Moment, Replay, load_snapshot, replay
from quorumlab.inspection.target import Target, find_target
from quorumlab.inspection.tree import differences, image_differences, tree_of

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture(scope="module")
def log() -> Target:
    target = find_target(str(GOLDEN / "kraft3/node-3"))
    assert isinstance(target, Target)
    return target


@pytest.mark.parametrize("offset", [0, 40, 74, 75, 120, 166])
def test_a_place_is_reached_by_records_and_no_further(log: Target, offset: int) -> None:
    state = replay(log, Moment(offset=offset))
    assert not state.problems
    assert state.image.at.offset == offset + 1


def test_a_time_includes_what_was_written_then(log: Target) -> None:
    written_ms = replay(log, Moment(offset=84)).timestamp_ms
    assert replay(log, Moment(time_ms=written_ms)).image.at.offset == 85
    assert replay(log, Moment(time_ms=written_ms - 1)).image.at.offset < 80


def test_a_log_that_was_cut_goes_on_from_its_snapshot(log: Target) -> None:
    cut = replace(log, segments=log.segments[1:])
    whole = replay(log, Moment(offset=170))
    (problem,) = replay(cut, Moment(offset=90)).problems.told[:1]
    assert problem.startswith("the log goes on at offset 88, and no snapshot")
    assert not replay(cut, Moment()).problems, "the snapshot at 163 has what came before"
    assert replay(cut, Moment()).image.at == whole.image.at


def test_complaints_without_end_are_counted(log: Target) -> None:
    alone = replace(log, segments=log.segments[1:], snapshots=())
    problems = replay(alone, Moment()).problems
    assert problems.count >= len(problems.told) > 10


# --- two of them ----------------------------------------------------------------------------


def at(log: Target, offset: int) -> Replay:
    """From the first record on, without a snapshot."""
    return replay(Target(path=log.path, segments=log.segments), Moment(offset=offset))


@pytest.mark.parametrize("number", [0, 1])
def test_a_snapshot_and_the_log_up_to_it_have_no_difference(log: Target, number: int) -> None:
    snapshot = load_snapshot(log.snapshots[number]).image
    assert list(image_differences(snapshot, at(log, snapshot.at.offset - 1).image)) == []


@pytest.mark.parametrize("places", [(20, 40), (60, 100), (104, 110), (110, 104), (140, 166)])
def test_what_columns_find_is_what_the_trees_say(log: Target, places: tuple[int, int]) -> None:
    one, other = (at(log, place).image for place in places)
    found = list(image_differences(one, other))
    assert found
    assert found == list(differences(tree_of(one), tree_of(other)))
