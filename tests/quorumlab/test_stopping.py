"""Nothing is left running behind an impatient second Ctrl-C."""

import os
import signal
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import ProcessId, end, is_alive, spawn
from quorumlab.verbs.nodes import stop_all, stopping

SLEEPER = "import signal; signal.pause()"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """Stand-ins run in the place of its three brokers and of its ZooKeeper."""
    monkeypatch.setattr(LocalCluster, "command", (sys.executable, "-S", "-c", SLEEPER))
    cluster = LocalCluster.create(tmp_path, brokers=3, design="zk-v3")
    assert cluster.zookeeper is not None
    (server,) = cluster.zookeeper.servers
    spawn([sys.executable, "-S", "-c", SLEEPER], log=server.log).save(server.pid_file)
    for node in cluster.layout.nodes:
        cluster.start(node.id)
    yield cluster
    for process in (zookeeper_of(cluster), *cluster.running().values()):
        if process is not None:
            end(process, how=signal.SIGKILL, timeout_seconds=5.0)


def zookeeper_of(cluster: LocalCluster) -> ProcessId | None:
    assert cluster.zookeeper is not None
    (server,) = cluster.zookeeper.servers
    return cluster.zookeeper.process(server)


def interrupt(self: LocalCluster, but: object) -> list[int]:
    raise KeyboardInterrupt


def test_time_that_is_said_covers_every_wave(cluster: LocalCluster) -> None:
    """15 s for brokers, 3 s until they do not ask their controller any more, 5 s for ZooKeeper."""
    told = stopping(cluster, cluster.stop_seconds())
    assert told == "stopping 3 nodes in good order, within 23 s"
    for node in cluster.layout.brokers:
        cluster.kill(node.id)
    told = stopping(cluster, cluster.stop_seconds())
    assert told == "stopping 0 nodes in good order, within 5 s"


def test_zookeeper_is_killed_with_the_nodes(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalCluster, "stop_all", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stop_all(cluster)
    assert (cluster.running(), zookeeper_of(cluster)) == ({}, None)


def test_node_that_has_just_ended_does_not_save_the_others(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kill = LocalCluster.kill

    def kill_late(self: LocalCluster, node_id: int) -> None:
        if node_id == 2:
            kill(self, node_id)  # in the place of its own end
        kill(self, node_id)

    monkeypatch.setattr(LocalCluster, "stop_all", interrupt)
    monkeypatch.setattr(LocalCluster, "kill", kill_late)
    with pytest.raises(KeyboardInterrupt):
        stop_all(cluster)
    assert cluster.running() == {}
    assert capsys.readouterr().err == "interrupted again: nodes 1, 3 were killed\n"


def test_who_was_there_before_keeps_its_zookeeper(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalCluster, "stop_all", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stop_all(cluster, but=(1,))
    assert list(cluster.running()) == [1]
    assert is_alive(zookeeper_of(cluster))


@pytest.mark.parametrize("signals_before", [0, 1])
def test_node_that_ends_while_it_is_looked_at_does_not_keep_the_others_running(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, signals_before: int
) -> None:
    """Processes of another one's are gone at once: they are no zombies of ours."""
    send, first, heard = os.kill, cluster.running()[1].pid, count()

    def send_late(pid: int, which: int) -> None:
        if pid != first:
            send(pid, which)
        elif next(heard) >= signals_before:
            send(pid, which)
            os.waitpid(pid, 0)
            raise ProcessLookupError

    monkeypatch.setattr(os, "kill", send_late)
    assert stop_all(cluster) == []
    assert cluster.running() == {}
