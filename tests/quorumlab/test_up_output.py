"""`up` and the readers of its output: what it has started is never left behind without a word."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab import cluster_status as status
from quorumlab.cli import main
from quorumlab.verbs import up

SLEEPER = "import signal; signal.pause()"
DESCRIBED = {
    "active_controller": 1,
    "controller_epoch": 1,
    "design": "quorum",
    "bootstrap_servers": "127.0.0.1:9092",
}


class Cut:
    """An output that is read up to a word: `up | grep -m 1 WORD`."""

    def __init__(self, word: str) -> None:
        self._word = word
        self._read = True

    def write(self, text: str) -> int:
        if not self._read:
            raise BrokenPipeError
        self._read = self._word not in text
        return len(text)

    def isatty(self) -> bool:
        return False

    def flush(self) -> None:
        if not self._read:
            raise BrokenPipeError

    def fileno(self) -> int:
        return self._nowhere

    def __enter__(self) -> Self:
        self._nowhere = os.open(os.devnull, os.O_WRONLY)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._nowhere)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cluster whose node is a stand-in that is ready at once."""

    def described(_cluster: LocalCluster) -> dict[str, Any]:
        return DESCRIBED

    monkeypatch.setattr(LocalCluster, "command", (sys.executable, "-c", SLEEPER))
    monkeypatch.setattr(LocalCluster, "wait_ready", lambda self, progress: None)
    monkeypatch.setattr(status, "describe", described)
    yield tmp_path
    cluster = LocalCluster.open(tmp_path)
    for node_id in cluster.running():
        cluster.kill(node_id)


SMALL = ("--combined", "--controllers", "1", "--brokers", "1")


@pytest.mark.parametrize("word", ["starting", "ready in", "bootstrap"])
def test_nodes_of_an_up_that_nobody_reads_are_stopped(
    word: str,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Cut(word) as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(["up", "--dir", str(directory), *SMALL]) == 0
    assert LocalCluster.open(directory).running() == {}
    told = capsys.readouterr().err
    assert told == ("" if word == "starting" else up.UNREAD + "\n")


def test_nodes_are_stopped_although_nobody_reads_that_they_are(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal's Ctrl-C ends the `tee` behind us, too."""
    monkeypatch.setattr(up, "_watch", lambda cluster, interrupted: None)
    with Cut("Ctrl-C stops it") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(["up", "--dir", str(directory), *SMALL]) == 0
    assert LocalCluster.open(directory).running() == {}


def test_what_is_left_running_is_told_to_whoever_still_listens(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cut("ready in") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(["up", "--dir", str(directory), *SMALL, "--detach"]) == 0
    assert list(LocalCluster.open(directory).running()) == [1]
    stop = f"quorumlab down --dir {directory}"
    assert capsys.readouterr().err == f"left running; stop it with `{stop}`\n"


def test_only_what_is_started_is_announced(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    up_again = ["up", "--dir", str(directory), "--detach"]
    assert main([*up_again, "--controllers", "1", "--brokers", "2"]) == 0
    assert "starting 1 controller and 2 brokers as 3 processes" in capsys.readouterr().out
    cluster = LocalCluster.open(directory)
    cluster.stop(2)
    assert main(up_again) == 0
    assert f"starting 1 broker as 1 process in {directory}\n" in capsys.readouterr().out
    assert main(up_again) == 0
    said = capsys.readouterr().out
    assert said.startswith("already running, taken over: nodes ")
    assert "starting" not in said
