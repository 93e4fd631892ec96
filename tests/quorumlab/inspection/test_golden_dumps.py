"""What Apache Kafka's own dump and metadata shell say of its files, our tools say, too."""

from pathlib import Path

import pytest

from quorumlab.inspection.batches import Batch, read_batches
from quorumlab.inspection.entries import entries
from quorumlab.inspection.states import Moment, replay
from quorumlab.inspection.target import Target, find_target
from quorumlab.inspection.tree import tree_of
from tests.quorumlab.inspection.kafkas import assert_shell_agrees, dumped_records, told_by_us
from wire.explain import explain_batch

GOLDEN = Path(__file__).parents[2] / "golden"
SHOWN = sorted(GOLDEN.glob("*/shell/*/*.txt"))


def dumps() -> list[Path]:
    found = [*GOLDEN.rglob("dump/*/__cluster_metadata-0/*.txt"), *GOLDEN.rglob("bootstrap*.txt")]
    return sorted(path for path in found if path.suffixes[0] in (".log", ".checkpoint"))


def dumped_file(dump: Path) -> Path:
    root = next(parent for parent in dump.parents if parent.name == "dump")
    return root.parent / dump.relative_to(root).with_suffix("")


def stored(path: Path) -> list[Batch]:
    return [found for found in read_batches(path) if isinstance(found, Batch)]


@pytest.mark.parametrize("dump", dumps(), ids=lambda path: str(path.relative_to(GOLDEN)))
def test_every_field_is_told_as_kafka_tells_it(dump: Path) -> None:
    ours = [entry for batch in stored(dumped_file(dump)) for entry in entries(batch)]
    assert list(map(told_by_us, ours)) == dumped_records(dump.read_text())


def test_there_are_dumps() -> None:
    assert len(dumps()) >= 10


@pytest.mark.parametrize("dump", dumps(), ids=lambda path: str(path.relative_to(GOLDEN)))
def test_every_byte_is_explained(dump: Path) -> None:
    for batch in stored(dumped_file(dump)):
        position = 0
        for found in explain_batch(batch.content):
            assert found.start == position <= found.end
            assert found.name != "unknown", found
            position = found.end
        assert position == len(batch.content)


# --- its metadata shell ---------------------------------------------------------------------


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
