"""Chaos on real processes: short runs, what they leave behind, and mistakes that they must find."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jepsen_like.history import History, Kind, Op, Value, read_history
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.verdict import Outcome
from jepsen_like.workloads.options import WorkloadOptions
from jepsen_like.workloads.registry import WORKLOADS

COMMAND = [sys.executable, "-m", "quorumlab", "chaos", "run"]


def chaos_run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run of the log under kills and pauses."""
    path = tmp_path_factory.mktemp("chaos") / "run"
    done = chaos_run(
        "--faults", "kill,pause", "--seconds", "10", "--seed", "1", "--format", "json",
        "--out", str(path),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == json.loads((path / "verdict.json").read_text())
    return path


@pytest.fixture(scope="module")
def history(directory: Path) -> History:
    return read_history((directory / "history.msgpack").read_bytes())


def test_run_under_kills_and_pauses_is_valid_and_its_faults_are_proven(directory: Path) -> None:
    told = json.loads((directory / "verdict.json").read_text())
    assert (told["summary"], told["verdict"]["outcome"], told["void"]) == ("valid", "valid", [])
    proven = {fault["kind"] for fault in told["faults"] if fault["bit"]}
    assert proven == {"kill", "pause"}
    assert told["safety"]["ok"] > 100
    assert told["recovered_seconds"] is not None


def test_directory_tells_what_was_run_and_keeps_no_data(directory: Path) -> None:
    told = json.loads((directory / "run.json").read_text())
    assert (told["workload"], told["seed"], told["faults"]) == ("log", 1, ["kill", "pause"])
    assert told["schedule"]
    assert "quorumlab chaos run" in told["command"]
    layout = LocalCluster.open(directory / "cluster").layout
    assert all(node.log.exists() and not node.data.exists() for node in layout.nodes)


def test_history_holds_clients_faults_and_samples(history: History) -> None:
    assert not history.is_cut
    assert [op.index for op in history.ops] == list(range(len(history.ops)))
    phases = [op.value for op in history.ops if op.f == "phase"]
    assert phases == ["warm-up", "safety", "liveness", "final"]
    faults = [op.f for op in history.ops if op.process == "nemesis" and op.f != "phase"]
    assert faults.count("inject") == faults.count("heal") >= 2
    observers = {op.process for op in history.ops if op.f == "observe"}
    assert observers == {f"node-{node}" for node in (1, 2, 3, 101, 102, 103)}


def test_lost_acknowledged_record_is_found(history: History, tmp_path: Path) -> None:
    """The same history, in which one acknowledged record is read by nobody."""
    acknowledged = [op.value[0] for op in history.ops if op.f == "send" and op.kind is Kind.OK]
    _, key, [_, value] = acknowledged[len(acknowledged) // 2]
    lost = replace(history, ops=[without(op, key, value) for op in history.ops])
    log = WORKLOADS["log"](WorkloadOptions(seed=1))
    assert log.check(history).outcome is Outcome.VALID
    verdict = log.check(lost)
    assert verdict.outcome.exit_code == 4
    assert any(str(value) in finding.detail for finding in verdict.findings)


def without(op: Op, key: str, value: int) -> Op:
    match op:
        case Op(f="poll", kind=Kind.OK, value=[["poll", found]]):
            kept: Value = {
                k: [each for each in records if (k, each[1]) != (key, value)]
                for k, records in found.items()
            }
            return replace(op, value=[["poll", kept]])
        case _:
            return op
