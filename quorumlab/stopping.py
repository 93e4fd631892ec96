"""Stopping a local cluster in good order, or at once for who does not want to wait."""

import sys
from collections.abc import Collection

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.output import say

__all__ = ["stop_all"]


def stop_all(cluster: LocalCluster, but: Collection[int] = ()) -> list[int]:
    """The ids of nodes that had to be killed. A Ctrl-C meanwhile kills all that still run: nobody
    should have to look for processes that an impatient moment left behind."""
    try:
        return cluster.stop_all(but)
    except KeyboardInterrupt:
        left = sorted(set(cluster.running()) - set(but))
        for node_id in left:
            cluster.kill(node_id)
        if left:
            say(f"interrupted again: nodes {', '.join(map(str, left))} were killed", sys.stderr)
        raise
