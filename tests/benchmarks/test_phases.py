"""`benchmarks.phases` counts a commit over three controllers in this process."""

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks import phases


def test_one_round_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"ROUNDS": 1, "PUTS": 5, "TIMED_PUTS": 5, "WARM_UP": 5}.items():
        monkeypatch.setattr(phases, name, value)
    asyncio.run(phases.measure(tmp_path, "controllers"))
    figures = {
        figure["name"]: figure["value"]
        for figure in map(json.loads, capsys.readouterr().out.splitlines())
    }
    prefix = "commit by phase, controllers: "
    assert 300 < figures[prefix + "calls"] < 5_000
    assert figures[prefix + "syncs"] >= 2, "a majority; who is late writes several at once"
    assert figures[prefix + "calls of Raft"] > 0
