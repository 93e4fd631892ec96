"""Stopping a local cluster in good order, or at once for who does not want to wait."""

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.output import say_if_heard

__all__ = ["stop_all", "stop_node"]


def stop_all(cluster: LocalCluster, but: Collection[int] = ()) -> list[int]:
    """The ids of nodes that had to be killed."""
    with _killed_by_another_interrupt(cluster, lambda: set(cluster.running()) - set(but)):
        return cluster.stop_all(but)


def stop_node(cluster: LocalCluster, node_id: int) -> None:
    """Raises ClusterError if it had to be killed."""
    with _killed_by_another_interrupt(cluster, lambda: {node_id} & set(cluster.running())):
        cluster.stop(node_id)


@contextmanager
def _killed_by_another_interrupt(
    cluster: LocalCluster, running: Callable[[], Collection[int]]
) -> Iterator[None]:
    """A Ctrl-C meanwhile kills all that still run: nobody should have to look for processes that
    an impatient moment left behind."""
    try:
        yield
    except KeyboardInterrupt:
        left = sorted(running())
        for node_id in left:
            cluster.kill(node_id)
        if left:
            nodes = ", ".join(map(str, left))
            say_if_heard(f"interrupted again: nodes {nodes} were killed", sys.stderr)
        raise
