"""`--remote`: the command starts a session on a server, and ends it."""

import json
from pathlib import Path

import pytest

from quorumlab.cli import main
from spark.session import Settings, SparkUnavailable, session
from tests.spark.test_command import run_in

pytestmark = pytest.mark.extra


def test_command_judges_on_a_server_and_writes_the_table(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_in(tmp_path / "runs/a", 13)
    asked = ["check", str(tmp_path / "runs"), "--format", "json"]
    code = main([*asked, "--on", "local"])
    here = json.loads(capsys.readouterr().out)
    written = str(tmp_path / "verdicts")
    stored = ["check", (tmp_path / "runs").as_uri(), "--format", "json"]
    for command in ([*asked, "--verdicts", written], stored):
        assert main([*command, "--remote", server]) == code
        there = json.loads(capsys.readouterr().out)
        assert (there["outcome"], there["counts"]) == (here["outcome"], here["counts"])
        if command is not stored:
            assert there["objects"] == here["objects"]
    assert main([*asked, "--remote", server, "--verdicts", written]) == 1
    assert f"--verdicts {written}: it is there already" in capsys.readouterr().err


def test_server_that_is_none_is_told(server: str) -> None:
    for url, why in (("sc://127.0.0.1:1", "no Spark Connect server answers"), ("x", "no sc://")):
        with pytest.raises(SparkUnavailable, match=why), session(Settings(remote=url)):
            pass
