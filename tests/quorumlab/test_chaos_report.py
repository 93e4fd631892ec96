"""`chaos report`: which runs it tells of. None is made here: all have their verdict."""

import json
from pathlib import Path

import pytest

from jepsen_like.campaign import plan_zk_campaign
from quorumlab.cli import main
from tests.jepsen_like.report.drawn import texts_of, too_wide


def made(directory: Path, design: str) -> list[str]:
    """A campaign of two runs that is done; returns the command that told of it."""
    for planned in plan_zk_campaign(design, runs=2, seed=1):
        run = directory / planned.directory
        run.mkdir(parents=True)
        told = {
            "design": design,
            "workload": planned.workload,
            "client": "confluent",
            "seed": planned.seed,
            "summary": "valid",
            "void": [],
            "verdict": {"findings": []},
            "exit_code": 0,
            "safety": {"seconds": 1, "ok": 1, "fail": 0, "info": 0, "ok_a_second": 1},
            "warm_up": {"ok_a_second": 1},
            "faults": [{"kind": "kill", "bit": planned.number == 1}],
            "faults_planned": 0,
            "controller_elections": 0,
            "leader_elections": 0,
            "recovered_seconds": 1.0,
            "command": "quorumlab chaos run",
        }
        (run / "verdict.json").write_text(json.dumps(told))
        (run / "run.json").write_text('{"commit": "abc"}')
    return ["chaos", "report", "--runs", "2", "--out", str(directory), "--design"]


def test_runs_of_one_design_are_not_told_as_those_of_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All designs with ZooKeeper have the same plan, so that they can be compared."""
    command = made(tmp_path / "out", "zk-v1")
    (tmp_path / "out" / "plan.json").write_text(plan())
    assert main([*command, "zk-v3"]) == 1
    assert "is a run of the design zk-v1, not zk-v3" in capsys.readouterr().err
    assert not (tmp_path / "out" / "report.md").exists()
    picture = tmp_path / "campaign.svg"
    assert main([*command, "zk-v1", "--export", str(picture)]) == 0
    drawn = texts_of(picture.read_text())
    assert {"1 log", "2 log", "verdict", "valid"} <= {*drawn}
    assert "2 valid: 2 operations in 2 runs, under 1 proven faults." in picture.read_text()
    assert too_wide(picture.read_text()) == []
    assert "## Design zk-v1" in (tmp_path / "out" / "report.md").read_text()


def plan() -> str:
    runs = [
        [each.directory, each.seed, list(each.kinds)]
        for each in plan_zk_campaign("zk-v1", runs=2, seed=1)
    ]
    return json.dumps({"seconds": 60, "runs": runs})
