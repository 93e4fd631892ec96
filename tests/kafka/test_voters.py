"""Voters that live in the log: Apache Kafka's tools on quorums of ours.

Its controllers among ours are in `test_interop_snapshots`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.cli import main
from tests.kafka.interop import TOOLS, needs_kafka, tool, wait
from tests.kafka.kafka_jars import run_tool
from tests.started import started

pytestmark = needs_kafka

FIRST, SECOND = 101, 102


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """Two controllers, one of which is the only voter, and a broker. Nothing runs yet."""
    laid_out = LocalCluster.create(tmp_path / "cluster", controllers=2, brokers=1, first_voters=1)
    try:
        yield laid_out
    finally:
        laid_out.stop_all()


def voters(cluster: LocalCluster) -> list[int]:
    """As Kafka's tool describes them."""
    where = ("--bootstrap-server", cluster.layout.bootstrap_servers)
    status = tool("metadata-quorum", *where, "describe", "--status")
    (line,) = [line for line in status.splitlines() if line.startswith("CurrentVoters:")]
    return [voter["id"] for voter in json.loads(line.partition(":")[2])]


def test_kafkas_tool_adds_and_removes_voters(cluster: LocalCluster) -> None:
    cluster.start_all()
    cluster.wait_ready()
    where = ("--bootstrap-server", cluster.layout.bootstrap_servers)
    config = ("--command-config", str(cluster.layout.node(SECOND).config))
    added = tool("metadata-quorum", *where, *config, "add-controller")
    assert f"Added controller {SECOND} with directory id " in added
    assert voters(cluster) == [FIRST, SECOND]
    first_voter = cluster.layout.node(FIRST).first_voter
    gone = ("--controller-id", str(FIRST), "--controller-directory-id", first_voter)
    removed = tool("metadata-quorum", *where, "remove-controller", *gone)
    assert f"KRaft controller {FIRST} with directory id {first_voter}\n" in removed
    wait(lambda: voters(cluster) == [SECOND], "the voters without the first")
    features = tool("features", *where, "describe")
    assert "Feature: kraft.version" in features
    assert "FinalizedVersionLevel: 1" in features.split("Feature: kraft.version")[1].splitlines()[0]
    cluster.stop_all()  # what is preallocated goes, at which Kafka's tool stumbles
    metadata = cluster.layout.node(FIRST).data / "__cluster_metadata-0"
    for name in ("00000000000000000000-0000000000.checkpoint", "00000000000000000000.log"):
        dumped = tool("dump-log", "--cluster-metadata-decoder", "--files", str(metadata / name))
        assert "KRaftVoters" in dumped
        assert "isvalid: false" not in dumped


def test_kafkas_tool_moves_static_voters_to_the_log(tmp_path: Path) -> None:
    with started(LocalCluster.create(tmp_path / "cluster", controllers=3, brokers=1)) as cluster:
        where = ("--bootstrap-server", cluster.layout.bootstrap_servers)
        upgrade = ("features", *where, "upgrade", "--feature", "kraft.version=1")
        wait(lambda: succeeds(*upgrade), "every voter's word that it can")
        directory = ("--dir", str(cluster.layout.directory))
        assert main(["quorum", "remove-controller", "--controller-id", "102", *directory]) == 0
        assert voters(cluster) == [101, 103]
        cluster.stop_all()
        cluster.start_all()
        cluster.wait_ready()
        assert voters(cluster) == [101, 103], "the log wins over the configuration"


def succeeds(name: str, *arguments: str) -> bool:
    return run_tool(TOOLS[name], arguments, timeout=60.0).returncode == 0
