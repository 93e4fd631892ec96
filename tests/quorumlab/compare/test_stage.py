"""Whoever waits is asked again and again, and is told where the time went."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import spawn
from quorumlab.compare.attempts import Outcome
from quorumlab.compare.client import MeasuringClient
from quorumlab.compare.experiments import EXPERIMENTS
from quorumlab.compare.stage import GaveUp, Stage
from quorumlab.compare.subjects import Subject, subject_named
from quorumlab.interrupts import interrupts, uninterrupted
from wire.errors import ErrorCode


def stage(directory: Path, *, seconds: float, subject: Subject | None = None) -> Stage:
    cluster = LocalCluster.create(directory, controllers=1, brokers=1)
    of = subject or subject_named("quorum")
    return Stage(cluster, of, EXPERIMENTS["broker-crash"], 9, seconds, lambda _: None)


def test_giving_up_tells_whether_it_had_begun(tmp_path: Path) -> None:
    late = stage(tmp_path, seconds=0)
    with pytest.raises(GaveUp, match="before anything was done to it: creating"):
        late.check("creating")
    late.mark()
    with pytest.raises(GaveUp, match="after 0 s, 0 of them since the fault: 7 of 9"):
        late.check("7 of 9")


def test_what_blocks_is_waited_for_until_the_time_is_up(tmp_path: Path) -> None:
    assert stage(tmp_path / "in time", seconds=60).patiently(lambda: 7, "asking") == 7
    never = threading.Event()
    try:
        with pytest.raises(GaveUp, match="asking"):
            stage(tmp_path / "late", seconds=0).patiently(never.wait, "asking")
    finally:
        never.set()


def test_controller_deals_with_all_that_a_broker_had_and_replicas_with_what_it_led(
    tmp_path: Path,
) -> None:
    counted = {
        name: stage(tmp_path / name, seconds=60, subject=subject_named(name)).counted([0, 3, 6])
        for name in ("zk-v1", "zk-v3", "quorum")
    }
    assert counted == {"zk-v1": 3, "zk-v3": 9, "quorum": 9}


def test_what_was_acknowledged_while_a_node_died_does_not_count(tmp_path: Path) -> None:
    """The node may have been needed for it: nothing tells yet that others do without."""
    struck = stage(tmp_path, seconds=60)
    client = struck.client = MeasuringClient([], struck.topics)
    struck.mark(failed_nodes=[1])
    attempts, now_ns = client._attempts, time.monotonic_ns()
    taken = attempts.take(2, now_ns, 9)
    answers = {each.partition: Outcome(ErrorCode.NONE, 0) for each in taken}
    attempts.told(2, taken, answers, now_ns)
    assert attempts.written == len(taken) > 0

    node = struck.cluster.layout.node(1)
    node.path.mkdir()
    spawn(["sleep", "60"], log=node.log).save(node.pid_file)
    struck.kill(1)
    assert attempts.written == 0


def test_ending_a_cluster_is_not_interrupted() -> None:
    with interrupts() as interrupt, uninterrupted():
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
    assert not interrupt.happened
