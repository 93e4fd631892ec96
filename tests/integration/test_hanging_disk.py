"""A disk whose sync hangs for 5 s stops its node once at most, and the quorum hardly at all.

The hang is a sleep in a wrapped fdatasync (`tests.integration.breakable_node`): first in an inline
sync, which stops the node, then in one in a thread. No disk is slow, and no sync reaches a medium.

Another node is to lead within the election time-out and a second. What is asserted allows 1.1 s
more for each split vote.
"""

import os
import signal
import time
from pathlib import Path

import pytest

from benchmarks.peers.quorum import leader_of
from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from tests.integration.breakable_node import HANG_SECONDS, HANGS
from tests.integration.puts import Puts, breakable_quorum, check_logs, lines_with
from tests.integration.waiting import wait

pytestmark = pytest.mark.extra  # a bound in seconds, on an idle machine

ELECTION_SECONDS = 1.0
ELECTED_SECONDS = ELECTION_SECONDS + 1.0
SPLIT_SECONDS = 1.1 * ELECTION_SECONDS  # what a split vote adds at most
STOPPED = "storage: a sync of __cluster_metadata-0 stopped this node for "


def test_sync_that_hangs_costs_one_stop_and_nothing_acknowledged(tmp_path: Path) -> None:
    timeout_ms = str(int(ELECTION_SECONDS * 1000))
    settings = {
        "controller.quorum.fetch.timeout.ms": timeout_ms,
        "controller.quorum.election.timeout.ms": timeout_ms,
    }
    with breakable_quorum(tmp_path / "cluster", 0, settings) as cluster:
        with Puts(cluster) as puts:
            elected, splits = hang_twice(cluster, puts)
        print(f"a new leader after {elected:.2f} s and {splits} split votes")
        print(f"{len(puts.acknowledged)} puts acknowledged")
        check_logs(cluster, puts.acknowledged)
    assert elected <= ELECTED_SECONDS + splits * SPLIT_SECONDS


def hang_twice(cluster: LocalCluster, puts: Puts) -> tuple[float, int]:
    """Let the leader's disk hang: once inline, once in a thread.

    Returns the time from the first hang to another leader, in seconds, and the split votes in it.
    """
    puts.go_on()
    first, before = leader_of(cluster)
    others = [node for node in cluster.layout.controllers if node is not first]
    hang_next_sync(cluster, first)
    wait(lambda: lines_with(first, HANGS), "a sync that hangs")
    began = at_seconds(lines_with(first, HANGS)[0])
    assert "inline" in lines_with(first, HANGS)[0]
    assert role(cluster, first) is None, "it answers nobody"
    hang_next_sync(cluster, first)  # after this one
    wait(lambda: any(role(cluster, node) == "leader" for node in others), "a new leader")
    elected = time.monotonic() - began
    splits = leader_of(cluster)[1].leader_epoch - before.leader_epoch - 1
    puts.go_on()

    wait(lambda: len(lines_with(first, HANGS)) == 2, "another sync that hangs")
    assert "in a thread" in lines_with(first, HANGS)[1]
    puts.go_on()
    assert role(cluster, first) is not None, "it answers while its disk hangs"
    end = at_seconds(lines_with(first, HANGS)[1]) + HANG_SECONDS
    assert time.monotonic() < end, "too late to say anything"
    wait(lambda: role(cluster, first) == "follower" and time.monotonic() > end, "it follows")
    puts.go_on()
    stops = [float(line.split(STOPPED)[1].split()[0]) for line in lines_with(first, STOPPED)]
    # As the node measured them: the sleep, and what it took to wake up. A busy disk stops it, too.
    (stop_ms,) = (stop for stop in stops if stop >= HANG_SECONDS * 1000)
    assert stop_ms < HANG_SECONDS * 1000 + 500
    return elected, splits


def hang_next_sync(cluster: LocalCluster, node: NodeLayout) -> None:
    process = cluster.process(node)
    assert process is not None
    os.kill(process.pid, signal.SIGUSR2)


def at_seconds(line: str) -> float:
    """When the node wrote the line, on the machine's clock."""
    return float(line.rpartition(" at ")[2])


def role(cluster: LocalCluster, node: NodeLayout) -> str | None:
    """None if it does not answer."""
    status, page = cluster.ask(node, "/v1/node", timeout_seconds=0.5)
    return str(page["quorum"]["role"]) if status == 200 else None
