"""Voters that live in the log, on real processes: one controller becomes three, and goes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from quorum.core.storage import METADATA_LOG
from quorum.log.files.checkpoints import QUORUM_STATE
from quorumlab.cli import main
from tests.integration.waiting import wait
from tests.started import started

FIRST, SECOND, THIRD = 101, 102, 103


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[LocalCluster]:
    """Three controllers, of which one was formatted as the only voter, and a broker."""
    with started(
        LocalCluster.create(tmp_path / "cluster", controllers=3, brokers=1, first_voters=1)
    ) as running:
        yield running


class Quorum:
    """`quorumlab quorum …`, with the cluster's directory and the captured answer."""

    def __init__(self, cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
        self._where = ("--dir", str(cluster.layout.directory))
        self._capsys = capsys

    def __call__(self, *arguments: str) -> str | None:
        """What it printed; None if it failed."""
        code = main(["quorum", *arguments, *self._where])
        return self._capsys.readouterr().out if code == 0 else None

    def voters(self) -> dict[int, str]:
        """Ids and directory ids."""
        told = self("describe", "--status", "--format", "json")
        found = [] if told is None else json.loads(told)["CurrentVoters"]
        return {voter["id"]: voter["directoryId"] for voter in found}

    def roles(self) -> dict[int, str]:
        told = self("describe", "--replication", "--format", "json")
        return {} if told is None else {row["NodeId"]: row["Status"] for row in json.loads(told)}

    def leader(self) -> int | None:
        told = self("describe", "--status", "--format", "json")
        return None if told is None else json.loads(told)["LeaderId"]


def test_voters_are_added_and_removed_while_the_cluster_runs(
    growing: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    quorum = Quorum(growing, capsys)
    assert list(quorum.voters()) == [FIRST]

    def add(node_id: int) -> None:
        config = str(growing.layout.node(node_id).config)
        wait(lambda: quorum("add-controller", "--config", config), f"adding {node_id}")
        assert quorum("add-voter", "--config", config) is None, "it is one already"

    add(SECOND)
    add(THIRD)
    assert list(quorum.voters()) == [FIRST, SECOND, THIRD]

    removed = quorum("remove-controller", "--controller-id", str(FIRST))
    assert removed is not None
    assert removed.startswith(f"Removed KRaft controller {FIRST} with directory id ")
    wait(lambda: quorum.leader() in (SECOND, THIRD), "another leader")
    assert list(quorum.voters()) == [SECOND, THIRD]
    assert quorum("remove-voter", "--controller-id", str(FIRST)) is None
    wait(lambda: quorum.roles().get(FIRST) == "Observer", "the former leader as an observer")

    add(FIRST)
    leader = quorum.leader()
    assert leader is not None
    growing.kill(leader)
    wait(lambda: quorum.leader() not in (None, leader), "a leader after the death of one")
    assert list(quorum.voters()) == [FIRST, SECOND, THIRD]
    state = growing.layout.node(SECOND).data / METADATA_LOG / QUORUM_STATE
    assert json.loads(state.read_text())["data_version"] == 1
