"""`up` on a directory that holds a cluster: what contradicts it is refused, whatever option it is.

`up` goes on to start processes where it refuses nothing; here it stops before that.
"""

from pathlib import Path
from typing import Any

import pytest

from jepsen_like.real.layout import ClusterLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.cli import main
from quorumlab.verbs import up

STARTED: list[ClusterLayout] = []
KINDS: dict[str, dict[str, Any]] = {
    "quorum": {},
    "combined": {"combined": True},
    "dynamic": {"first_voters": 3},
    "zookeeper": {"design": "zk-kip497", "brokers": 2},
    "another's": {"design": "zk-kip497", "zookeeper_connect": "there:2181"},
}


@pytest.fixture
def directory(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """With a cluster that was never started; `up` does not start it, either."""

    def started(_args: object, cluster: LocalCluster, _interrupted: object) -> int:
        STARTED.append(cluster.layout)
        return 0

    STARTED.clear()
    monkeypatch.setattr(up, "_run", started)
    monkeypatch.setattr("quorumlab.verbs.up_cluster.missing_reason", lambda: None)
    if request.param is not None:
        LocalCluster.create(tmp_path, **KINDS[request.param])
    return tmp_path


@pytest.mark.parametrize(
    ("directory", "options", "told"),
    [
        ("zookeeper", "--design quorum", "whose design is zk-kip497, not quorum"),
        ("zookeeper", "--design zk-v1", "whose design is zk-kip497, not zk-v1"),
        ("zookeeper", "--brokers 3", "whose number of brokers is 2, not 3"),
        ("zookeeper", "--zookeepers 3", "whose number of ZooKeepers is 1, not 3"),
        ("zookeeper", "--zookeeper-connect h:1", "whose number of ZooKeepers is 1, not 0"),
        ("zookeeper", "--controllers 1", "in zk-kip497 no node is set apart"),
        ("zookeeper", "--combined", "in zk-kip497 no node is set apart"),
        ("zookeeper", "--dynamic", "in zk-kip497 no node is set apart"),
        ("zookeeper", "--engine raftos", "zk-kip497 keeps its metadata in ZooKeeper"),
        ("zookeeper", "--port 1", "not 1: use another --dir"),
        ("another's", "--zookeeper-connect h:1", "whose ZooKeeper is there:2181, not h:1"),
        ("another's", "--zookeepers 1", "whose number of ZooKeepers is 0, not 1"),
        ("quorum", "--design zk-v1", "whose design is quorum, not zk-v1"),
        ("quorum", "--engine raftos", "engine"),  # another, or none that is installed
        ("quorum", "--zookeepers 1", "the quorum design has no ZooKeeper"),
        ("quorum", "--zookeeper-connect h:1", "the quorum design has no ZooKeeper"),
        ("quorum", "--controllers 1", "whose number of controllers is 3, not 1"),
        ("quorum", "--combined", "whose combined roles is False, not True"),
        ("quorum", "--dynamic", "whose way to name voters is static, not dynamic"),
        ("dynamic", "--design zk-v1", "whose design is quorum, not zk-v1"),
        ("dynamic", "--controllers 5", "whose number of controllers is 3, not 5"),
        ("combined", "--brokers 1", "whose number of brokers is 3, not 1"),
    ],
    indirect=["directory"],
)
def test_what_contradicts_the_directory_is_refused(
    directory: Path, options: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--dir", str(directory), *options.split()]) in (1, 2)
    assert told in capsys.readouterr().err
    assert not STARTED


@pytest.mark.parametrize(
    ("directory", "options"),
    [
        ("zookeeper", "--design zk-kip497 --brokers 2 --zookeepers 1"),
        ("zookeeper", "--zookeepers 1"),
        ("zookeeper", ""),
        ("another's", "--zookeeper-connect there:2181"),
        ("quorum", "--design quorum --engine native --controllers 3 --brokers 3"),
        ("combined", "--combined"),
        ("dynamic", "--dynamic --controllers 3"),
    ],
    indirect=["directory"],
)
def test_what_is_there_is_started_by_the_same_options_and_without_any(
    directory: Path, options: str
) -> None:
    held = ClusterLayout.load(directory)
    assert main(["up", "--dir", str(directory), *options.split()]) == 0
    assert [held] == STARTED


@pytest.mark.parametrize("directory", ["another's"], indirect=True)
def test_another_zookeeper_needs_nothing_here(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorumlab.verbs.up_cluster.missing_reason", lambda: "no Java")
    assert main(["up", "--dir", str(directory)]) == 0
    assert STARTED


@pytest.mark.parametrize("directory", [None], indirect=True)
@pytest.mark.parametrize("left", [("up.lock", "zookeeper"), ("cluster.tmp",), ("lost+found",)])
def test_what_a_first_up_has_left_is_no_obstacle(directory: Path, left: tuple[str, ...]) -> None:
    """It was killed, or its disk was full, before it had written which cluster that is."""
    for name in left:
        (directory / name).mkdir()
    (directory / left[0]).rmdir()
    (directory / left[0]).write_text("")
    assert main(["up", "--dir", str(directory)]) == 0
    assert STARTED


def test_the_design_is_told_before_an_engine_that_it_cannot_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words `leave the engine out` help nobody who has given none."""
    monkeypatch.setattr("jepsen_like.real.shape.why_not_installed", lambda: None)
    monkeypatch.setattr("quorumlab.verbs.up_cluster.missing_reason", lambda: None)
    LocalCluster.create(tmp_path, engine="raftos")
    assert main(["up", "--dir", str(tmp_path), "--design", "zk-v1"]) == 1
    assert "whose design is quorum, not zk-v1" in capsys.readouterr().err


@pytest.mark.parametrize("directory", [None], indirect=True)
@pytest.mark.parametrize(
    ("controllers", "told"),
    [
        ("1", ""),
        ("3", ""),
        (
            "2",
            "warning: 2 controllers tolerate no more failures than 1, for their majority is "
            "larger: take 1 or 3\n",
        ),
        (
            "4",
            "warning: 4 controllers tolerate no more failures than 3, for their majority is "
            "larger: take 3 or 5\n",
        ),
    ],
)
def test_an_even_number_of_controllers_is_warned_of_once(
    directory: Path, controllers: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["up", "--dir", str(directory / "new"), "--controllers", controllers]
    assert [main(given), capsys.readouterr().err] == [0, told]
    assert [main(given), capsys.readouterr().err] == [0, ""], "the cluster is there by now"
