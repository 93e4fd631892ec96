"""The `quorumlab` command as a user runs it: up, status, topics, node verbs, down."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import IO

import pytest

from jepsen_like.real.kafka_client import Client
from jepsen_like.real.processes import ProcessId, is_alive
from quorumlab.cli import main
from tests.hostile_files import write_hostile_files
from wire.messages.features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse


def quorumlab(*arguments: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "quorumlab", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.fixture(scope="module", autouse=True)
def in_a_directory_of_the_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Files of any name may lie where a command is run."""
    with chdir(write_hostile_files(tmp_path_factory.mktemp("work"))):
        yield


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
    assert (created.stdout, created.stderr) == ("Created topic t.\n", "")
    described = quorumlab("topics", "describe", *where, "--topic", "t").stdout.splitlines()
    assert described[0].startswith("Topic: t\tTopicId: ")
    assert "PartitionCount: 2\tReplicationFactor: 2\tConfigs: retention.ms=1000" in described[0]
    assert len(described) == 3
    states = quorumlab("topics", "describe", *where, "--topic", "t", "--states").stdout
    assert states.count("State: OnlinePartition") == 2
    assert states.count("=OnlineReplica") == 4
    assert "t" in quorumlab("topics", "list", *where).stdout.split()
    again = quorumlab("topics", "create", *where, "--topic", "t")
    assert again.returncode == 1
    assert "TOPIC_ALREADY_EXISTS" in again.stderr
    as_json = ("--topic", "t", "--format", "jsonl")
    configs = ("--config", "flush.ms=5", "--config", "compression.type=gzip")
    altered = quorumlab("topics", "alter", *where, "--partitions", "3", *configs, *as_json)
    assert altered.stdout == '{"name": "t"}\n', altered.stderr
    assert "kept, without an effect: flush.ms\n" in altered.stderr
    deleted = quorumlab("topics", "delete", *where, *as_json)
    assert deleted.stdout == '{"name": "t"}\n', deleted.stderr
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
    killed = quorumlab("node-kill", "2", *where, "--format", "json")
    assert json.loads(killed.stdout) == {"node_id": 2, "state": "killed", "pid": None}
    sick = quorumlab("status", *where, "--format", "json")
    assert sick.returncode == 3
    assert [b["state"] for b in json.loads(sick.stdout)["brokers"] if b["id"] == 2] == ["dead"]
    started = quorumlab("node-start", "2", *where)
    assert started.returncode == 0, started.stderr
    assert quorumlab("node-stop", "2", *where).stdout == "node 2: stopped\n"
    assert quorumlab("node-stop", "2", *where).stdout == "node 2: not running\n"
    assert quorumlab("node-start", "2", *where).stdout.startswith("node 2: ready, process ")


@pytest.mark.extra
def test_describe_shows_eligible_leaders_unless_the_feature_is_off(directory: Path) -> None:
    where = ("--dir", str(directory))
    create = ("topics", "create", *where, "--replication-factor", "2", "--partitions", "1")
    created = quorumlab(*create, "--topic", "eligible", "--config", "min.insync.replicas=2")
    assert created.returncode == 0, created.stderr
    describe = ("topics", "describe", *where, "--topic", "eligible")
    assert quorumlab(*describe).stdout.endswith("Elr: \tLastKnownElr: \n")
    assert quorumlab("node-kill", "2", *where).returncode == 0
    deadline = time.monotonic() + 20
    while not (shown := quorumlab(*describe).stdout).endswith("Elr: 2\tLastKnownElr: \n"):
        assert time.monotonic() < deadline, shown
    assert quorumlab("node-start", "2", *where).returncode == 0
    off = FeatureUpdateKey(
        feature="eligible.leader.replicas.version",
        max_version_level=0,
        upgrade_type=2,  # safe downgrade
    )
    status = json.loads(quorumlab("status", *where, "--format", "json").stdout)
    with Client([("127.0.0.1", status["brokers"][0]["port"])]) as client:
        client.ask(UpdateFeaturesRequest(feature_updates=(off,)), UpdateFeaturesResponse)
    while not (shown := quorumlab(*describe).stdout).endswith("Elr: N/A\tLastKnownElr: N/A\n"):
        assert time.monotonic() < deadline, shown


def test_changed_counts_are_refused_with_the_reason(directory: Path) -> None:
    refused = quorumlab("up", "--dir", str(directory), "--brokers", "3", "--detach")
    assert refused.returncode == 1
    assert "number of brokers is 2, not 3" in refused.stderr


def test_the_same_port_and_settings_again_are_no_change(directory: Path) -> None:
    status = json.loads(quorumlab("status", "--dir", str(directory), "--format", "json").stdout)
    port = min(node["port"] for node in status["brokers"])
    again = ("up", "--dir", str(directory), "--detach")
    same = quorumlab(*again, "--port", str(port), "--set", "broker.session.timeout.ms=2000")
    assert same.returncode == 0, same.stderr
    other_port = quorumlab(*again, "--port", str(port + 1))
    assert (other_port.returncode, f"first port is {port}" in other_port.stderr) == (2, True)
    other_setting = quorumlab(*again, "--set", "broker.session.timeout.ms=2001")
    assert (other_setting.returncode, "is for a new one" in other_setting.stderr) == (2, True)


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


@pytest.mark.extra
def test_death_of_a_node_is_reported_and_a_killed_up_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "data"
    small = ("up", "--dir", str(path), "--combined", "--controllers", "1", "--brokers", "1")
    up = subprocess.Popen(
        [sys.executable, "-m", "quorumlab", *small],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert up.stdout is not None
    try:
        with up.stdout as output:
            read_until(output, "Ctrl-C stops it")
            assert quorumlab("node-kill", "1", "--dir", str(path)).returncode == 0
            told = read_until(output, "  start it with `quorumlab node-start 1 --dir ")
            assert told[0] == "node 1 died; it is not started again. Its last lines:\n"
            assert any("broker-state state=RUNNING" in line for line in told), told
            assert f"  the whole log: {path / '1' / 'node.log'}\n" in told
            assert quorumlab("node-start", "1", "--dir", str(path)).returncode == 0
            up.kill()
            up.wait()
        again = quorumlab(*small, "--detach")
        assert again.returncode == 0, again.stderr
        assert "already running, taken over: nodes 1\n" in again.stdout
        assert "starting" not in again.stdout
    finally:
        up.kill()
        up.wait()
        down = ("down", "--dir", str(path), "--format", "json")
        stopped = [json.loads(quorumlab(*down).stdout) for _ in range(2)]
    assert stopped == [{"directory": str(path), "stopped": ids, "killed": []} for ids in ([1], [])]
    status = quorumlab("status", "--dir", str(path), "--format", "json")
    assert status.returncode == 3
    assert [broker["state"] for broker in json.loads(status.stdout)["brokers"]] == ["stopped"]


def read_until(output: IO[str], beginning: str) -> list[str]:
    lines = []
    for line in output:
        lines.append(line)
        if line.startswith(beginning):
            return lines
    raise AssertionError(f"no line begins with {beginning!r}: {lines}")


def test_ctrl_c_during_the_start_leaves_nothing_running(tmp_path: Path) -> None:
    up = subprocess.Popen(
        [sys.executable, "-m", "quorumlab", "up", "--dir", str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert up.stdout is not None
        read_until(up.stdout, "time-outs")
        deadline = time.monotonic() + 20
        while len(pid_files := list(tmp_path.glob("data/*/node.pid"))) < 6:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        processes = [ProcessId.load(file) for file in pid_files]
        up.send_signal(signal.SIGINT)
        _, said = up.communicate(timeout=40)
        assert up.returncode == 130
        assert said == "interrupted: what was started is stopped again\n"
        assert not any(is_alive(process) for process in processes)
    finally:
        up.kill()
        up.wait()
        quorumlab("down", "--dir", str(tmp_path / "data"))


def test_second_ctrl_c_kills_what_is_still_stopping(tmp_path: Path) -> None:
    path = tmp_path / "data"
    small = ("up", "--dir", str(path), "--controllers", "1", "--brokers", "1")
    up = subprocess.Popen(
        [sys.executable, "-m", "quorumlab", *small],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert up.stdout is not None
        read_until(up.stdout, "ready in")
        processes = [ProcessId.load(path / node / "node.pid") for node in ("1", "101")]
        assert processes[0] is not None
        os.kill(processes[0].pid, signal.SIGSTOP)  # the broker will not stop by itself
        up.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 20
        while (path / "1" / "node.pid").exists():  # gone as soon as its end is waited for
            assert time.monotonic() < deadline
            time.sleep(0.01)
        up.send_signal(signal.SIGINT)
        _, said = up.communicate(timeout=20)
        assert up.returncode == 130
        assert "interrupted again: nodes 1, 101 were killed" in said
        assert not any(is_alive(process) for process in processes)
    finally:
        up.kill()
        up.wait()
        quorumlab("down", "--dir", str(path))


def test_taken_port_is_named_and_nothing_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = quorumlab("up", "--dir", str(tmp_path / "data"), "--port", str(port))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"quorumlab: port {port} is taken")
    assert refused.stderr.endswith(f", process {os.getpid()}\n")
    assert list(tmp_path.glob("data/*")) == []


def test_unwritable_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "file", tmp_path / "file" / "below"):
        refused = quorumlab("up", "--dir", str(directory))
        assert refused.returncode == 1
        told = f"quorumlab: --dir {directory}: that is a file: name a new directory\n"
        assert refused.stderr == told


def test_environment_overrides_the_file_of_a_node_but_not_of_a_cluster(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PROCESS_ROLES", "tortoise")
    refused = quorumlab("node", "--config", str(directory / "2" / "server.properties"))
    assert (refused.returncode, "'tortoise' is neither" in refused.stderr) == (1, True)
    where = ("--dir", str(directory))
    again = quorumlab("node-start", "2", *where)
    assert again.returncode == 1
    assert "node 2 runs already, as process" in again.stderr
    assert quorumlab("node-stop", "2", *where).returncode == 0
    assert quorumlab("node-start", "2", *where).returncode == 0


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
        (("topics", "list", "--bootstrap-server", "localhost:99999"), 2, "is not host:port"),
        (("up", "--design", "zk-v9"), 2, "did you mean 'zk-v3'? one of quorum, zk-v1"),
        (("up", "--design", "zk-v3", "--controllers", "3"), 2, "leave them out"),
        (("up", "--engine", "paxos"), 2, "one of native, raftos"),
        (("up", "--engine", "raftos", "--controllers", "2"), 2, "for 3, 5, ... controllers"),
        (("up", "--engine", "raftos", "--design", "zk-v3"), 2, "leave the engine out"),
        (
            ("chaos", "sim", "--design", "zk-v9"),
            2,
            "--design zk-v9: did you mean 'zk-v3'? one of quorum, zk-v1",
        ),
        (("chaos", "sim", "--design", "zk-v3", "--workload", "register"), 2, "a majority of"),
        (("chaos", "sim", "--design", "zk-v3", "--cluster"), 2, "--cluster is not for runs"),
        (("chaos", "sim", "--engine", "raftos"), 2, "only (its state is class-level)"),
        (("up", "--brokers", "0"), 2, "from 1 to 99"),
        (("node", "--config", "/nonexistent.properties"), 1, "cannot read"),
        (("up", "--port", "80000"), 2, "from 1 to 65000"),
        (("up", "--set", "log.segment.bytes=1"), 2, "must be at least 14"),
        (("up", "--set", "node.id=5"), 2, "each node has its own node.id"),
        (("up", "--set", "quorumlab.http.nodes="), 2, "each node has its own quorumlab.http.nodes"),
        (("nonsense",), 2, "no verb 'nonsense'"),
        (("statsu",), 2, "did you mean 'status'?"),
        (("up", "--bokers", "3"), 2, "see `quorumlab up --help`"),
    ],
)
def test_a_mistake_gets_a_sentence_and_no_stack_trace(
    arguments: tuple[str, ...], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process: most of what so many of them would cost is to start."""
    returned = main(arguments)
    told = capsys.readouterr().err
    assert (returned, words in told) == (code, True), told
    assert "Traceback" not in told


def test_output_may_be_cut_off(directory: Path) -> None:
    command = f"{sys.executable} -m quorumlab status --dir {directory} | head -1"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=os.environ, check=False
    )
    assert "Traceback" not in done.stderr
