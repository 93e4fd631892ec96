"""What `doctor` says of a place: its clusters, the processes and ports around them."""

import json
import socket
from pathlib import Path

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.cli import main
from quorumlab.inspection import surroundings
from quorumlab.inspection.facts import Level
from quorumlab.inspection.surroundings import (
    clusters_in,
    disk_finding,
    port_findings,
    process_findings,
    running_nodes,
)


@pytest.fixture
def cluster(tmp_path: Path) -> LocalCluster:
    """Laid out, and never started."""
    return LocalCluster.create(tmp_path / "data", controllers=1, brokers=1)


def process(proc: Path, pid: int, *words: str) -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "cmdline").write_bytes(b"\0".join(word.encode() for word in words) + b"\0")


def test_nodes_are_found_by_their_command_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc, ours, other = tmp_path / "proc", tmp_path / "a/1/x", tmp_path / "b/1/x"
    monkeypatch.setattr(surroundings, "_PROCESSES", proc)
    for config in (ours, other):
        config.parent.mkdir(parents=True)
        config.touch()
    started = ("python", "-m", "quorumlab", "node", "--config")
    process(proc, 11, *started, str(ours))
    process(proc, 12, *started, str(other))
    process(proc, 13, *started, str(tmp_path / "gone/1/x"))
    process(proc, 14, "python", "-m", "quorumlab", "status")
    process(proc, 15, "vim", "node", "--config", str(ours))
    (proc / "16").mkdir()
    assert [node.pid for node in running_nodes()] == [11, 12, 13]
    elsewhere, gone = sorted(
        process_findings(running_nodes(), [tmp_path / "a"]), key=lambda finding: finding.level.value
    )
    assert (elsewhere.level, elsewhere.text) == (
        Level.FINE,
        f"1 node of another cluster: {tmp_path / 'b'}",
    )
    assert (gone.level, gone.advice) == (Level.PROBLEM, "`kill 13` ends it")


def test_port_that_another_has_is_a_problem(cluster: LocalCluster) -> None:
    directory = cluster.layout.directory
    assert list(port_findings(directory)) == []
    node = cluster.layout.brokers[0]
    with socket.socket() as other:
        other.bind((node.host, node.port))
        other.listen()
        (found,) = port_findings(directory)
    assert found.level is Level.PROBLEM
    assert found.text == f"port {node.port} of node {node.id} is in use by another process"


def test_little_room_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert disk_finding(tmp_path).level is Level.FINE
    monkeypatch.setattr(surroundings, "_FREE_BYTES_LEAST", 1 << 60)
    assert disk_finding(tmp_path).level is Level.WARNING


def test_clusters_of_a_place_are_looked_at(
    cluster: LocalCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(surroundings, "_PROCESSES", tmp_path / "proc")
    monkeypatch.setattr(surroundings, "javas_of_machine", lambda: ())
    monkeypatch.setattr(surroundings, "java_of_wheel", lambda: None)
    assert clusters_in(Path()) == [Path("data")]
    assert clusters_in(Path("data")) == [Path("data")]
    assert main(["doctor", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "all stopped" in [finding["text"] for finding in told["here"]]
    assert "stopped" in [finding["text"] for finding in told["clusters"]["data"]["findings"]]
    assert main(["doctor"]) == 0
    assert "\ndata:\n" in capsys.readouterr().out
    assert main(["doctor", "--format", "jsonl"]) == 0
    lines = list(map(json.loads, capsys.readouterr().out.splitlines()))
    assert {line["place"] for line in lines} == {"here", "data"}


def test_place_without_a_cluster_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(surroundings, "_PROCESSES", tmp_path / "proc")
    monkeypatch.setattr(surroundings, "javas_of_machine", lambda: ())
    monkeypatch.setattr(surroundings, "java_of_wheel", lambda: None)
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert "fine     no cluster in this directory" in told
    assert told[-1].endswith("`quorumlab up` starts one")
    assert main(["doctor", "--remove", "1"]) == 2
