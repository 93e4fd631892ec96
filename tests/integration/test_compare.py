"""The smallest comparison: two designs, one broker that is killed, ten partitions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jepsen_like.real.zookeeper import missing_reason
from quorumlab.compare.results import MEASURED, CellKey, Results

NO_ZOOKEEPER = missing_reason()
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(NO_ZOOKEEPER is not None, reason=NO_ZOOKEEPER or ""),
]

PARTITIONS = 10
STEPS = ("detected", "decided", "persisted", "applied", "first write")


def compare(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "quorumlab", "compare", "--out", str(directory)]
    arguments += ["--designs", "zk-kip497,quorum", "--engines", "native", "--settings", "equal"]
    arguments += ["--experiments", "broker-crash", "--partitions", str(PARTITIONS), *options]
    return subprocess.run(
        arguments, env=dict(os.environ), capture_output=True, text=True, timeout=240, check=False
    )


def test_tiny_matrix_is_measured_and_not_measured_again(tmp_path: Path) -> None:
    first = compare(tmp_path)
    assert first.returncode == 0, first.stderr
    assert (tmp_path / "compare.html").exists()
    cells = Results.load(tmp_path / "results.json").cells
    for subject in ("zk-kip497", "quorum"):
        key = CellKey(
            subject=subject,
            experiment="broker-crash",
            partitions=PARTITIONS,
            timeouts="equal",
        )
        cell = cells[key]
        assert (cell.outcome, cell.why) == (MEASURED, "")
        assert cell.records.lost == cell.records.unread == 0
        assert cell.records.acknowledged > PARTITIONS
        times = [cell.done_ms(step) for step in STEPS]
        assert None not in times, dict(zip(STEPS, times, strict=True))
        # One transaction with a znode for each partition; one record each, and the fencing.
        written = cell.ledger["brokers"].get("zk.multi.set", 0)
        appended = cell.ledger.get("controllers", {}).get("log.records", 0)
        expected = (PARTITIONS, 0) if subject == "zk-kip497" else (0, PARTITIONS + 1)
        assert (written, appended) == expected, cell.ledger

    again = compare(tmp_path, "--format", "json")
    assert "0 cells to measure" in again.stderr
    assert {row["subject"] for row in json.loads(again.stdout)} == {"zk-kip497", "quorum"}
