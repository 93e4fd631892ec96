"""`quorumlab doctor` as it is called: what its words stand for, and the exit code."""

import shutil
from pathlib import Path

import pytest

from quorumlab.cli import main

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


def test_what_is_not_there_is_a_slip_and_no_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(NODE), "/nowhere"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "quorumlab: /nowhere: no such file or directory, and no HOST:PORT\n"


def log_directory() -> Path:
    return next(path.parent for path in NODE.rglob("*.log"))
