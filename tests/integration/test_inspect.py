"""`inspect` and `doctor` on a live cluster, on the directories of its running nodes, and at a
terminal."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.cli import main
from quorumlab.inspection.live import describe_quorum_of
from quorumlab.inspection.target import Address
from tests.started import started

GOLDEN = Path(__file__).parents[1] / "golden"
FIRST, SECOND, THIRD, BROKER = 101, 102, 103, 1
Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three controllers whose voters live in the log, a broker, and a topic of one partition."""
    directory = tmp_path_factory.mktemp("inspect") / "cluster"
    with started(
        LocalCluster.create(directory, controllers=3, brokers=1, first_voters=3)
    ) as running:
        admin = AdminClient({"bootstrap.servers": running.layout.bootstrap_servers})
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(15)
        yield running


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit code and output of a verb."""

    def call(*words: str) -> tuple[int, str]:
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


def address(node: NodeLayout) -> str:
    return f"{node.host}:{node.controller_port or node.port}"


@pytest.mark.parametrize("node_id", [FIRST, SECOND, BROKER])
def test_a_live_quorum_is_looked_into_through_any_node(
    small: LocalCluster, run: Run, node_id: int
) -> None:
    where = address(small.layout.node(node_id))
    code, said = run("inspect", where, "--format", "json")
    summary = json.loads(said)
    assert code == 0
    assert summary["cluster_id"] == small.layout.cluster_id
    assert [voter["id"] for voter in summary["voters"]["voters"]] == [FIRST, SECOND, THIRD]
    assert summary["committed"]["offset"] == summary["end_offset"]
    assert run("inspect", "verify", where)[0] == 0
    code, said = run("inspect", "at", "end", where)
    assert code == 0
    assert "Topic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1" in said
    assert "created on [1]" in run("inspect", "why", "orders-0", where)[1]
    assert run("inspect", "tree", where, "/topics/orders/partitions/0/leader") == (0, "1\n")
    assert "TOPIC_RECORD" in run("inspect", "dump", "--topic", "orders", where)[1]


def test_a_running_nodes_directory_says_what_the_quorum_says(small: LocalCluster, run: Run) -> None:
    node = small.layout.node(SECOND)
    code, said = run("inspect", "diff", "--at", "12", str(node.path), address(node))
    assert code == 0
    assert said.splitlines()[2:] == ["no difference"], "no more than which is which"


@pytest.mark.parametrize("kind", ["quorum", "files"])
def test_tail_follows_what_is_written(small: LocalCluster, kind: str) -> None:
    node = small.layout.node(FIRST)
    where = address(node) if kind == "quorum" else str(node.path)
    admin = AdminClient({"bootstrap.servers": small.layout.bootstrap_servers})
    command = [sys.executable, "-m", "quorumlab", "inspect", "tail", "--format", "json", where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tail:
        assert tail.stdout is not None
        next(tail.stdout)  # it follows
        admin.create_topics([NewTopic(f"seen-{kind}", 1, 1)])[f"seen-{kind}"].result(15)
        topics = (json.loads(line).get("topic") for line in tail.stdout)
        assert next(topic for topic in topics if topic) == f"seen-{kind}"
        tail.send_signal(2)
        tail.stdout.read()
        assert tail.wait(10) == 0


@pytest.mark.parametrize("kind", ["quorum", "files"])
def test_tail_may_start_inside_a_batch(small: LocalCluster, run: Run, kind: str) -> None:
    node = small.layout.node(FIRST)
    where = address(node) if kind == "quorum" else str(node.path)
    dumped = run("inspect", "dump", "--type", "topic", "--format", "json", where)[1]
    behind_topic = json.loads(dumped.splitlines()[0])["offset"] + 1  # one batch has both
    command = [sys.executable, "-m", "quorumlab", "inspect", "tail", "--format", "json"]
    with subprocess.Popen(
        [*command, "--from", str(behind_topic), where], stdout=subprocess.PIPE, text=True
    ) as tail:
        assert tail.stdout is not None
        first = json.loads(next(tail.stdout))
        tail.send_signal(2)
        tail.stdout.read()
        assert tail.wait(10) == 0
    assert (first["offset"], first["type"]) == (behind_topic, "PARTITION_RECORD")


def test_tail_outlives_the_leader_that_it_was_pointed_at(small: LocalCluster) -> None:
    node = small.layout.node(BROKER)
    described = describe_quorum_of(Address(node.host, node.port))
    leader = small.layout.node(described.topics[0].partitions[0].leader_id)
    command = [sys.executable, "-m", "quorumlab", "inspect", "tail", "--format", "json"]
    with subprocess.Popen([*command, address(leader)], stdout=subprocess.PIPE, text=True) as tail:
        assert tail.stdout is not None
        epoch = json.loads(next(tail.stdout))["epoch"]
        small.kill(leader.id)
        assert any(json.loads(line)["epoch"] > epoch for line in tail.stdout)
        tail.send_signal(2)
        tail.stdout.read()
        assert tail.wait(10) == 0
    small.start(leader.id)
    small.wait_ready()


def test_the_doctor_finds_a_voter_that_died_and_one_that_was_formatted_anew(
    small: LocalCluster, run: Run
) -> None:
    nodes = [small.layout.node(node_id) for node_id in (FIRST, SECOND, THIRD)]
    directories = [str(node.path) for node in nodes]
    everything = (address(nodes[0]), small.layout.bootstrap_servers, *directories)
    asked = ("doctor", *everything, "--remove", str(THIRD))
    until(run, "yes: 2 of the 2 voters that remain are up", *asked, code=0)

    small.kill(THIRD)
    refused = "no: of the 2 voters that remain only 1 are up"  # once the others have a leader
    _, said = until(run, refused, "doctor", *everything, "--remove", str(SECOND), code=3)
    assert f"voter endpoint {address(nodes[2])} cannot be reached" in said
    _, said = run("doctor", address(nodes[0]), "--remove", str(BROKER))
    assert "no: broker 1 holds replicas of" in said
    assert "the only one in sync" in said

    shutil.rmtree(nodes[2].data)
    where = ("--config", str(nodes[2].config), "--cluster-id", small.layout.cluster_id)
    assert run("format", *where, "--no-initial-controllers")[0] == 0
    small.start(THIRD)
    _, said = until(run, "formatted anew", "doctor", address(nodes[0]))
    assert re.search(rf"node {THIRD} runs with directory.id \S+, but the voter of that id", said)


def until(run: Run, text: str, *words: str, code: int | None = None) -> tuple[int, str]:
    """What the verb says once it says this, with that exit code if one is wanted."""
    deadline = time.monotonic() + 30
    while True:
        ended, said = run(*words)
        if text in said and code in (None, ended):
            return ended, said
        assert time.monotonic() < deadline, said


def test_the_prompt_completes_remembers_and_goes_back_in_time() -> None:
    """As people see it: a terminal on both sides."""
    command = [sys.executable, "-m", "quorumlab", "inspect", "tree", str(GOLDEN / "kraft3/node-1")]
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "dumb", "LINES": "100", "COLUMNS": "200"}
    shell = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        answer(ours, "/> ")
        assert "six/" in told(ours, "ls top\t\n")
        assert "/topics/six> " in told(ours, "cd topics/si\t\n")
        assert "leader = -1" in told(ours, "ls partitions/0\n")
        assert "after offset 30" in told(ours, "at 30\n")
        assert "leader = 1" in told(ours, "\x10\x10\n"), "the line before the last one, again"
        assert "no such command" in told(ours, "nonsense\n")
        os.write(ours, b"exit\n")
        assert shell.wait(10) == 0
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)


def told(terminal: int, line: str) -> str:
    os.write(terminal, line.encode())
    return answer(terminal, "> ")


def answer(terminal: int, prompt: str) -> str:
    """What is written until the next prompt waits."""
    said = ""
    deadline = time.monotonic() + 15
    while not re.search(rf"{re.escape(prompt)}$", said):
        assert time.monotonic() < deadline, said
        if select.select([terminal], [], [], 0.5)[0]:
            said += os.read(terminal, 4096).decode()
    return said
