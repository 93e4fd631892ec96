"""What Apache Kafka's own metadata shell shows of its logs and snapshots, our tree shows too."""

from pathlib import Path

import pytest

from quorumlab.inspection.states import Moment, replay
from quorumlab.inspection.target import Target, find_target
from quorumlab.inspection.tree import tree_of
from tests.quorumlab.inspection.kafkas import assert_shell_agrees

GOLDEN = Path(__file__).parents[2] / "golden"
SHOWN = sorted(GOLDEN.glob("*/shell/*/*.txt"))


def test_there_is_something_to_compare() -> None:
    assert len(SHOWN) >= 5


@pytest.mark.parametrize("shown", SHOWN, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_every_value_that_the_shell_shows_agrees(shown: Path) -> None:
    node, step = shown.parent.name, shown.parents[2]
    target = find_target(str(step / node / "__cluster_metadata-0" / shown.stem))
    assert isinstance(target, Target)
    state = replay(target, Moment())
    assert not state.problems
    assert_shell_agrees(shown.read_text(), tree_of(state.image))
