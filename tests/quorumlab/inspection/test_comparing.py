"""Two images of the same or of different states, whatever rows they have."""

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
