"""The smallest comparison: every design and engine, one broker that is killed, ten partitions.

What the ledger must say exactly is what the design fixes: docs/zookeeper-mode.md.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from jepsen_like.real.zookeeper import missing_reason
from quorumlab.compare.results import MEASURED, Cell, CellKey, Results
from quorumlab.compare.subjects import ALL_DESIGNS, subjects

NO_ZOOKEEPER = missing_reason()
pytestmark = [
    pytest.mark.extra,
    pytest.mark.skipif(NO_ZOOKEEPER is not None, reason=NO_ZOOKEEPER or ""),
]

ENGINES = ("native", "raftos")
HAS_RAFTOS = find_spec("raftos") is not None
PARTITIONS = 10
STEPS = ("detected", "decided", "persisted", "applied", "first write")
OF_QUORUM = {"log.records": PARTITIONS + 1}  # and the fencing
# The dead broker leaves the ISR of every partition. In zk-v1 and zk-v2, candidates race for those
# that it led, and the number of those who try is not fixed.
EXACTLY = {
    "zk-v1": {"zk.set.versioned": 0, "zk.multi": 0},
    "zk-v2": {"zk.set.versioned": PARTITIONS},
    "zk-v3": {"zk.set.versioned": PARTITIONS, "zk.multi": 0},  # one conditional write each
    "zk-redesign": {"zk.set.versioned": PARTITIONS, "zk.multi": 0},
    "zk-kip497": {"zk.set": 0, "zk.multi": 1, "zk.multi.set": PARTITIONS},
    "quorum": OF_QUORUM,
    "quorum/raftos": OF_QUORUM,
}


def compare(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "quorumlab", "compare", "--out", str(directory)]
    arguments += ["--engines", ",".join(ENGINES if HAS_RAFTOS else ENGINES[:1])]
    arguments += ["--settings", "equal", "--experiments", "broker-crash"]
    arguments += ["--partitions", str(PARTITIONS), *options]
    return subprocess.run(
        arguments, env=dict(os.environ), capture_output=True, text=True, timeout=600, check=False
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("compared")
    done = compare(made)
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(params=[each.name for each in subjects(ALL_DESIGNS, ENGINES)])
def cell(directory: Path, request: pytest.FixtureRequest) -> Cell:
    if request.param == "quorum/raftos" and not HAS_RAFTOS:
        pytest.skip("raftos is not installed: `make raftos` does it")
    key = CellKey(
        subject=request.param, experiment="broker-crash", partitions=PARTITIONS, timeouts="equal"
    )
    return Results.load(directory / "results.json").cells[key]


def test_every_partition_is_written_again_and_nothing_is_lost(cell: Cell) -> None:
    assert (cell.outcome, cell.why) == (MEASURED, "")
    assert cell.done_ms("first write") is not None
    assert cell.records.acknowledged > PARTITIONS
    assert cell.records.unread == 0
    assert cell.records.lost == 0 or cell.records.admitted


def test_design_with_a_controller_tells_every_step_in_its_order(cell: Cell) -> None:
    if cell.subject in ("zk-v1", "zk-v2"):
        pytest.skip("replicas elect, each for itself")
    times = [cell.done_ms(step) for step in STEPS]
    known = [each for each in times if each is not None]
    assert len(known) == len(STEPS), dict(zip(STEPS, times, strict=True))
    assert known[:4] == sorted(known[:4])


def test_ledger_says_exactly_what_the_design_fixes(cell: Cell) -> None:
    counts = {**cell.ledger.get("brokers", {}), **cell.ledger.get("controllers", {})}
    expected = EXACTLY[cell.subject]
    assert {name: counts.get(name, 0) for name in expected} == expected, cell.ledger


def test_what_is_measured_is_shown_and_not_measured_again(directory: Path) -> None:
    assert (directory / "compare.html").exists()
    again = compare(directory, "--format", "json")
    assert "0 cells to measure" in again.stderr
    assert {row["subject"] for row in json.loads(again.stdout)} >= set(ALL_DESIGNS)
