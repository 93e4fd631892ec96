"""What is read from directories for a diagnosis."""

import shutil
from pathlib import Path

import pytest

from quorumlab.cli import main
from quorumlab.inspection.facts import read
from quorumlab.inspection.target import Target, find_target

NODE = Path(__file__).parents[2] / "golden/kraft3/node-1"


@pytest.fixture
def only_a_snapshot(tmp_path: Path) -> Path:
    """A follower that fetched a snapshot, and nothing behind it yet."""
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    snapshot = "00000000000000000075-0000000001.checkpoint"
    shutil.copy(NODE / directory.name / snapshot, directory)
    (directory / "00000000000000000075.log").touch()
    return tmp_path


def test_a_log_behind_a_snapshot_ends_where_that_ends(only_a_snapshot: Path) -> None:
    target = find_target(str(only_a_snapshot))
    assert isinstance(target, Target)
    facts = read("node", target)
    assert (facts.last_epoch, facts.end_offset) == (1, 75)
    assert facts.problems == ()


def test_a_log_without_records_is_no_empty_target(
    only_a_snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(only_a_snapshot)]) == 0
    assert capsys.readouterr().out.endswith("records          none behind the snapshots\n")
