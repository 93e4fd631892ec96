"""Nodes that `up` starts are forks of one process, and look as if each had been started alone."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jepsen_like.python_children import python_command, python_environment
from jepsen_like.real.free_ports import holder_of
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import is_alive, spawn_forks, started_at
from quorumlab.inspection.surroundings import running_nodes
from tests.integration.waiting import wait
from tests.started import started

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nodes are forked on Linux only")


FORKED = (3, 4, 101)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Brokers 1 and 2 have something of their own, and are started alone; the others are forks."""
    made = LocalCluster.create(tmp_path_factory.mktemp("forks") / "data", controllers=1, brokers=4)
    made.environment[1] = {"OF_ITS_OWN": "1"}
    made.entrance[2] = ("env", "OF_ITS_OWN=2")
    with started(made):
        yield made


def test_each_has_a_session_a_command_line_and_a_log_of_its_own(cluster: LocalCluster) -> None:
    running = cluster.running()
    assert sorted(running) == [1, 2, *FORKED]
    for node in cluster.layout.nodes:
        pid = running[node.id].pid
        assert os.getsid(pid) == pid
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        alone = [*LocalCluster.command, "--config", str(node.config)]
        assert [word.decode() for word in words[: len(alone)]] == alone
        assert f"pid {pid}" in node.log.read_text()


def test_those_who_look_at_processes_tell_them_apart(cluster: LocalCluster) -> None:
    pids = {each.pid: each.config for each in running_nodes()}
    for node in cluster.layout.nodes:
        process = cluster.running()[node.id]
        assert pids[process.pid] == node.config
        assert holder_of(node.http_port).startswith(f"node {node.id} of the cluster in")


LOADED = """
import os, sys
from quorumlab.prefork import _load_code
_load_code([])
assert len(os.listdir("/proc/self/task")) == 1, "only a process of one thread can be forked"
assert any(name.startswith("kio.") for name in sys.modules), "codecs are loaded once"
"""


def test_they_come_from_a_process_of_one_thread_that_has_loaded_the_codecs(
    cluster: LocalCluster,
) -> None:
    words = Path(f"/proc/{cluster.running()[FORKED[0]].pid}/environ").read_bytes().split(b"\0")
    environment = dict(word.decode().split("=", 1) for word in words if word)
    subprocess.run([sys.executable, "-c", LOADED], env=environment, check=True)


def test_nodes_with_something_of_their_own_are_started_alone(cluster: LocalCluster) -> None:
    for node, process in cluster.running().items():
        environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert (f"OF_ITS_OWN={node}".encode() in environment) == (node not in FORKED)


def test_a_command_of_their_own_is_what_is_started(tmp_path: Path) -> None:
    """As that of a node with planted bugs."""
    planted = LocalCluster.create(tmp_path / "data", controllers=1, brokers=1)
    planted.command = (sys.executable, "-c", "import sys; print('mine:', *sys.argv[1:])")
    planted.start_all()
    logs = {node.log: f"mine: --config {node.config} " for node in planted.layout.nodes}
    wait(
        lambda: all(told in log.read_text() for log, told in logs.items()),
        "both their commands",
        10,
    )


def test_they_have_ids_of_their_own(cluster: LocalCluster) -> None:
    properties = [(node.data / "meta.properties").read_text() for node in cluster.layout.nodes]
    ids = {each for text in properties for each in re.findall(r"^directory\.id=(.+)$", text, re.M)}
    assert len(ids) == len(cluster.layout.nodes)


WRONG = {1: (b"process.roles=juggler\n", "juggler"), 2: (b"node.id=\xff\n", "no text in UTF-8")}


def test_a_node_that_cannot_start_says_so_in_its_log(tmp_path: Path) -> None:
    broken = LocalCluster.create(tmp_path / "data", controllers=1, brokers=2)
    for node_id, (wrong, _) in WRONG.items():
        node = broken.layout.node(node_id)
        node.path.mkdir(parents=True)
        node.config.write_bytes(wrong)
        node.log.write_text("what it said in an earlier life\n")
    try:
        broken.start_all()
        for node_id, (_, told) in WRONG.items():
            ended = rf"node {node_id} ended while starting:\n.*{told}"
            with pytest.raises(ClusterError, match=ended) as caught:
                broken.wait_ready(nodes=(node_id,))
            assert "earlier" not in str(caught.value)
    finally:
        broken.kill_all()


def test_what_cannot_be_loaded_starts_nothing(tmp_path: Path) -> None:
    command = python_command("quorumlab.no_such_module")
    nodes = [(["node", "--config", "one"], tmp_path / "log")]
    with pytest.raises(ClusterError, match=r"nodes cannot be started: .*no_such_module"):
        next(spawn_forks(command, nodes, environment=python_environment()))


FORKS_FOUR = """
import os, time
for is_told in (True, True, True, False):
    pid = os.fork()
    if pid == 0:
        if is_told:
            os.setsid()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        time.sleep(60)
    open("pids", "a").write(f"{pid}\\n")
    if is_told:
        print(pid, flush=True)
time.sleep(60)
"""


def test_no_fork_outlives_a_start_that_was_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three are told, of which one was heard of; a fourth has not left the session yet."""
    monkeypatch.chdir(tmp_path)
    nodes = [(["node", "--config", str(at)], tmp_path / "log") for at in range(4)]
    starting = spawn_forks([sys.executable, "-c", FORKS_FOUR], nodes, environment=os.environ)
    first = next(starting)
    wait(lambda: len((tmp_path / "pids").read_text().split()) == 4, "four forks", 10)
    starting.close()
    told, *others = map(int, (tmp_path / "pids").read_text().split())
    try:
        assert first.pid == told
        assert is_alive(first), "it is known to whoever started it"
        wait(lambda: not any(started_at(pid) for pid in others), "the end of the others", 5)
    finally:
        os.kill(told, signal.SIGKILL)


def test_node_that_cannot_be_entered_does_not_run_on(tmp_path: Path) -> None:
    """Its process would be known to nobody."""
    full = LocalCluster.create(tmp_path / "data", controllers=1, brokers=1)
    node = full.layout.node(1)
    node.pid_file.mkdir(parents=True)  # it cannot be written
    full.command = (sys.executable, "-c", "import time; time.sleep(60)", "quorumlab", "node")
    with pytest.raises(ClusterError, match="cannot start node 1"):
        full.start(1)
    assert [each for each in running_nodes() if each.config == node.config] == []
