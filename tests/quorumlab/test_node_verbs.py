"""What `node-start` says while it waits, and in which state it leaves a node that is not ready."""

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import ProcessId, is_alive, spawn
from quorumlab.cli import INTERRUPTED, main
from quorumlab.verbs import nodes

SLEEPER = "import signal; signal.pause()"
Progress = Callable[[str], None]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """Its node's process is a stand-in that never gets ready."""
    monkeypatch.setattr(LocalCluster, "command", (sys.executable, "-c", SLEEPER))
    monkeypatch.setattr(nodes, "_SILENT_SECONDS", -1.0)
    cluster = LocalCluster.create(tmp_path, controllers=1, brokers=1, combined=True)
    yield cluster
    for node_id in cluster.running():
        cluster.kill(node_id)


def waiting_ends(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def wait_ready(
        self: LocalCluster, seconds: float, nodes: tuple[int, ...], progress: Progress
    ) -> None:
        for _ in range(2):
            progress("0 of 1 ready; node 1: this node hears of no leader of the quorum")
        raise error

    monkeypatch.setattr(LocalCluster, "wait_ready", wait_ready)


def test_ctrl_c_takes_the_start_back(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting_ends(monkeypatch, KeyboardInterrupt())
    assert main(["node-start", "1", "--dir", str(cluster.layout.directory)]) == INTERRUPTED
    assert cluster.running() == {}
    assert capsys.readouterr().err.splitlines() == [
        "waiting up to 30 s for node 1: 0 of 1 ready; node 1: this node hears of no leader of the "
        "quorum",
        "interrupted: node 1 is stopped again",
    ]


def test_ctrl_c_while_the_process_begins_takes_the_start_back(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else nobody would know its process id."""

    def spawn_interrupted(*given: Any, **named: Any) -> ProcessId:
        process = spawn(*given, **named)
        started.append(process)
        signal.raise_signal(signal.SIGINT)
        return process

    started: list[ProcessId] = []
    monkeypatch.setattr("jepsen_like.real.local_cluster.spawn", spawn_interrupted)
    assert main(["node-start", "1", "--dir", str(cluster.layout.directory)]) == INTERRUPTED
    assert [is_alive(process) for process in started] == [False]
    assert "interrupted: node 1 is stopped again" in capsys.readouterr().err


def test_node_that_is_not_ready_in_time_is_left_running_and_it_is_said(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another node may be what it waits for."""
    directory = cluster.layout.directory
    waiting_ends(monkeypatch, ClusterError("not ready after 30 s:\n  node 1: no leader"))
    assert main(["node-start", "1", "--dir", str(directory)]) == 1
    assert list(cluster.running()) == [1]
    told = capsys.readouterr().err
    assert told.endswith(
        f"it is left running; stop it with `quorumlab node-stop 1 --dir {directory}`\n"
    )


def test_node_that_has_ended_is_not_said_to_run(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(LocalCluster, "command", (sys.executable, "-c", "raise SystemExit('full')"))
    assert main(["node-start", "1", "--dir", str(cluster.layout.directory)]) == 1
    assert capsys.readouterr().err.endswith("node 1 ended while starting:\n  full\n")


def test_impatient_second_ctrl_c_kills_the_node(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted_again(self: LocalCluster, node_id: int) -> None:
        raise KeyboardInterrupt

    waiting_ends(monkeypatch, KeyboardInterrupt())
    monkeypatch.setattr(LocalCluster, "stop", interrupted_again)
    assert main(["node-start", "1", "--dir", str(cluster.layout.directory)]) == INTERRUPTED
    assert not is_alive(ProcessId.load(cluster.layout.node(1).pid_file))
    assert "interrupted again: nodes 1 were killed" in capsys.readouterr().err


def test_a_broker_without_a_controller_is_told_what_starts_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(LocalCluster, "command", (sys.executable, "-c", SLEEPER))
    cluster = LocalCluster.create(tmp_path, controllers=1, brokers=1)
    waiting_ends(monkeypatch, ClusterError("not ready"))
    try:
        assert main(["node-start", "1", "--dir", str(tmp_path)]) == 1
        up = f"quorumlab up --dir {tmp_path}"
        advice = f"  no controller runs; `{up}` starts all that is down"
        assert advice in capsys.readouterr().err.splitlines()
    finally:
        cluster.kill_all()
