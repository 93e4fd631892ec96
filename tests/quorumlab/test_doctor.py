"""`quorumlab doctor` as it is called: what its words stand for, and the exit code."""

import shutil
from pathlib import Path

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.cli import main
from tests.quorumlab.inspection.test_cluster_health import zookeeper
from tests.quorumlab.pasted import pasted

NODE = Path(__file__).parents[1] / "golden" / "kraft3" / "node-1"


def rows(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The names in the table of directories."""
    told = capsys.readouterr().out.splitlines()
    return [line.split()[0] for line in told[1 : told.index("")]]


def test_one_log_by_two_names_is_one_log(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", str(NODE), str(NODE / "__cluster_metadata-0"), f"{NODE}/../{NODE.name}"])
    assert rows(capsys) == [str(NODE)]


def test_a_whole_cluster_stands_for_its_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cluster.json").write_text("{}")
    for node in ("1", "2"):
        shutil.copytree(log_directory(), tmp_path / node / "data" / "__cluster_metadata-0")
    main(["doctor", str(tmp_path), str(tmp_path / "2")])
    assert rows(capsys) == [str(tmp_path / "1"), str(tmp_path / "2")]


@pytest.mark.parametrize("design", ["quorum", "zk-v3"])
def test_a_cluster_that_is_down_is_unhealthy(
    design: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "my clusters"
    LocalCluster.create(directory, design=design)
    assert main(["doctor", str(directory)]) == 3
    told = capsys.readouterr().out
    assert f"problem  nothing of the cluster in {directory} runs" in told
    assert "is a whole cluster: name one of its nodes" not in told
    assert pasted(told) == [["quorumlab", "up", "--dir", str(directory)]]


def test_a_design_on_zookeeper_that_is_well_is_fine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorumlab.verbs.doctor.describe", lambda _: zookeeper("running"))
    LocalCluster.create(tmp_path, design="zk-v1", brokers=1)
    assert main(["doctor", str(tmp_path)]) == 0
    assert "all 2 nodes run, and every partition is replicated" in capsys.readouterr().out


def test_files_alone_do_not_tell_whether_a_node_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(NODE)]) == 0
    assert "only files were looked at" in capsys.readouterr().out


def test_what_is_not_there_is_a_slip_and_no_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(NODE), "/nowhere"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert (
        told.err == "quorumlab: /nowhere: no such file or directory, and no HOST:PORT: name one\n"
    )


def log_directory() -> Path:
    return next(path.parent for path in NODE.rglob("*.log"))
