"""The `quorumlab` command as a user runs it: up, status, topics, node verbs, down."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jepsen_like.real.processes import ProcessId, is_alive


def quorumlab(*arguments: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "quorumlab", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small cluster that `up --detach` started."""
    path = tmp_path_factory.mktemp("command") / "data"
    started = quorumlab(
        "up", "--dir", str(path), "--combined", "--controllers", "1", "--brokers", "2", "--detach"
    )
    assert started.returncode == 0, started.stderr
    assert "ready in" in started.stdout
    yield path
    stopped = quorumlab("down", "--dir", str(path))
    assert stopped.returncode == 0, stopped.stderr


def test_status_is_the_documented_json(directory: Path) -> None:
    done = quorumlab("status", "--dir", str(directory), "--format", "json")
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert status["design"] == "quorum"
    assert status["engine"] == "native"
    assert status["zookeepers"] == []
    assert status["active_controller"] == 1
    assert status["controller_epoch"] >= 1
    assert len(status["bootstrap_servers"].split(",")) == 2
    keys = {"id", "pid", "host", "port", "http_port", "state", "dir"}
    for node in status["controllers"] + status["brokers"]:
        assert keys <= set(node)


def test_topics_are_created_described_and_deleted(directory: Path) -> None:
    where = ("--dir", str(directory))
    created = quorumlab(
        "topics", "create", *where, "--topic", "t", "--partitions", "2",
        "--replication-factor", "2", "--config", "retention.ms=1000",
    )  # fmt: skip
    assert created.stdout == "Created topic t.\n", created.stderr
    described = quorumlab("topics", "describe", *where, "--topic", "t").stdout.splitlines()
    assert described[0].startswith("Topic: t\tTopicId: ")
    assert "PartitionCount: 2\tReplicationFactor: 2\tConfigs: retention.ms=1000" in described[0]
    assert len(described) == 3
    assert "t" in quorumlab("topics", "list", *where).stdout.split()
    again = quorumlab("topics", "create", *where, "--topic", "t")
    assert again.returncode == 1
    assert "TOPIC_ALREADY_EXISTS" in again.stderr
    assert quorumlab("topics", "delete", *where, "--topic", "t").returncode == 0
    assert "t" not in quorumlab("topics", "list", *where).stdout.split()


def test_quorum_describe_has_kafkas_columns(directory: Path) -> None:
    where = ("--dir", str(directory))
    status = quorumlab("quorum", "describe", "--status", *where).stdout.splitlines()
    assert [line.split(":")[0] for line in status] == [
        "ClusterId",
        "LeaderId",
        "LeaderEpoch",
        "HighWatermark",
        "MaxFollowerLag",
        "MaxFollowerLagTimeMs",
        "CurrentVoters",
        "CurrentObservers",
    ]
    replication = quorumlab("quorum", "describe", "--replication", *where).stdout.splitlines()
    assert replication[0].split() == [
        "NodeId",
        "DirectoryId",
        "LogEndOffset",
        "Lag",
        "LastFetchTimestamp",
        "LastCaughtUpTimestamp",
        "Status",
    ]
    assert replication[1].split()[-1] == "Leader"


def test_node_verbs_and_a_status_that_says_unhealthy(directory: Path) -> None:
    where = ("--dir", str(directory))
    assert quorumlab("node-kill", "2", *where).returncode == 0
    sick = quorumlab("status", *where, "--format", "json")
    assert sick.returncode == 3
    assert [b["state"] for b in json.loads(sick.stdout)["brokers"] if b["id"] == 2] == ["dead"]
    started = quorumlab("node-start", "2", *where)
    assert started.returncode == 0, started.stderr
    assert quorumlab("node-stop", "2", *where).returncode == 0
    assert quorumlab("node-start", "2", *where).returncode == 0


def test_changed_counts_are_refused_with_the_reason(directory: Path) -> None:
    refused = quorumlab("up", "--dir", str(directory), "--brokers", "3", "--detach")
    assert refused.returncode == 1
    assert "number of brokers is 2, not 3" in refused.stderr


def test_up_stops_on_ctrl_c_and_continues_with_the_same_data(tmp_path: Path) -> None:
    path = tmp_path / "data"
    small = ("up", "--dir", str(path), "--combined", "--controllers", "1", "--brokers", "1")
    up = subprocess.Popen(
        [sys.executable, "-m", "quorumlab", *small], stdout=subprocess.PIPE, text=True
    )
    assert up.stdout is not None
    try:
        for line in up.stdout:
            if line.startswith("ready in"):
                break
        second = quorumlab(*small)
        assert second.returncode == 1
        assert f"in use by process {up.pid}" in second.stderr
        created = quorumlab("topics", "create", "--dir", str(path), "--topic", "kept")
        assert created.returncode == 0, created.stderr
        up.send_signal(signal.SIGINT)
        up.stdout.read()
        assert up.wait(30) == 0
    finally:
        up.kill()
        up.wait()
        up.stdout.close()
    assert quorumlab(*small, "--detach").returncode == 0
    try:
        assert "kept" in quorumlab("topics", "list", "--dir", str(path)).stdout.split()
    finally:
        assert quorumlab("down", "--dir", str(path)).returncode == 0


def test_down_finds_the_orphans_of_a_killed_up(tmp_path: Path) -> None:
    path = tmp_path / "data"
    small = ("up", "--dir", str(path), "--combined", "--controllers", "1", "--brokers", "1")
    up = subprocess.Popen(
        [sys.executable, "-m", "quorumlab", *small], stdout=subprocess.PIPE, text=True
    )
    assert up.stdout is not None
    with up.stdout as output:
        for line in output:
            if line.startswith("ready in"):
                break
        up.kill()
        up.wait()
    orphan = ProcessId.load(path / "1" / "node.pid")
    assert is_alive(orphan)
    assert quorumlab("down", "--dir", str(path)).returncode == 0
    deadline = time.monotonic() + 10
    while is_alive(orphan):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("status", "--dir", "/nonexistent/quorumlab"), 1, "no cluster in"),
        (("topics", "list", "--bootstrap-server", "127.0.0.1:1"), 1, "no bootstrap server answers"),
        (("topics", "list", "--bootstrap-server", "nonsense"), 2, "is not host:port"),
        (("up", "--design", "zk-v3"), 2, "only quorum is here so far"),
        (("up", "--brokers", "0"), 2, "from 1 to 99"),
        (("node", "--config", "/nonexistent.properties"), 1, "cannot read"),
        (("nonsense",), 2, "invalid choice"),
    ],
)
def test_a_mistake_gets_a_sentence_and_no_stack_trace(
    arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = quorumlab(*arguments)
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_output_may_be_cut_off(directory: Path) -> None:
    command = f"{sys.executable} -m quorumlab status --dir {directory} | head -1"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=os.environ, check=False
    )
    assert "Traceback" not in done.stderr
