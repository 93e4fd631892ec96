"""Stops nodes of a local cluster in good order; another Ctrl-C meanwhile kills them."""

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.output import say_if_heard

__all__ = ["stop_all", "stop_node"]


def stop_all(cluster: LocalCluster, but: Collection[int] = ()) -> list[int]:
    """Returns the ids of nodes that had to be killed."""
    with _killed_by_another_interrupt(cluster, {node.id for node in cluster.layout.nodes} - {*but}):
        try:
            return cluster.stop_all(but)
        except KeyboardInterrupt:
            if not but:
                cluster.kill_zookeeper()
            raise


def stop_node(cluster: LocalCluster, node_id: int) -> None:
    """Raises ClusterError if it had to be killed."""
    with _killed_by_another_interrupt(cluster, {node_id}):
        cluster.stop(node_id)


@contextmanager
def _killed_by_another_interrupt(cluster: LocalCluster, nodes: set[int]) -> Iterator[None]:
    """A user who is impatient should not have to look for processes that were left behind."""
    try:
        yield
    except KeyboardInterrupt:
        running = sorted(nodes & cluster.running().keys())
        left = [node_id for node_id in running if _killed(cluster, node_id)]
        if left:
            names = ", ".join(map(str, left))
            say_if_heard(f"interrupted again: nodes {names} were killed", sys.stderr)
        raise


def _killed(cluster: LocalCluster, node_id: int) -> bool:
    """False if it has come to its orderly end by then."""
    try:
        cluster.kill(node_id)
    except (ClusterError, ProcessLookupError):
        return False
    return True
