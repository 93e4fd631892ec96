"""Controllers that die before or after a write, a sync or a message, under puts: nothing is lost.

`tests/sim/test_crash_points.py` kills a simulated commit at every such moment. Here real processes
die at random ones, by SIGKILL: the seed decides which process dies and when, not what else happens
at that moment.
"""

import os
import signal
from collections import Counter
from pathlib import Path
from random import Random, randrange

import pytest

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from tests.integration.breakable_node import DIES
from tests.integration.puts import Puts, breakable_quorum, check_logs, lines_with, start
from tests.integration.waiting import wait

pytestmark = pytest.mark.extra  # half a minute of both cores

ROUNDS = 8


def test_nothing_acknowledged_is_lost_when_nodes_die_at_their_effects(tmp_path: Path) -> None:
    seed = int(os.environ.get("BREAKABLE_TEST_SEED", randrange(1 << 32)))
    print(f"BREAKABLE_TEST_SEED={seed}")
    random = Random(seed)
    with breakable_quorum(tmp_path / "cluster", seed) as cluster:
        with Puts(cluster) as puts:
            for turn in range(ROUNDS):
                puts.go_on()
                nodes = random.sample(cluster.layout.controllers, random.choice((1, 1, 2, 3)))
                die(cluster, nodes)
                for node in nodes:
                    start(cluster, node, f"{seed}/{node.id}/{turn}")
                cluster.wait_ready()
            puts.go_on()
        died = [line for node in cluster.layout.controllers for line in lines_with(node, DIES)]
        moments = Counter(line.removeprefix(DIES).partition(" at ")[0].strip() for line in died)
        print(f"{len(puts.acknowledged)} puts acknowledged, {len(died)} deaths:", dict(moments))
        assert len(died) >= ROUNDS
        assert len(moments) > 3
        check_logs(cluster, puts.acknowledged)


def die(cluster: LocalCluster, nodes: list[NodeLayout]) -> None:
    """Let each node die at a moment of its own; elections bring them there if puts do not."""
    for node in nodes:
        process = cluster.process(node)
        assert process is not None
        os.kill(process.pid, signal.SIGUSR1)
    wait(lambda: not any(map(cluster.process, nodes)), "all deaths")
