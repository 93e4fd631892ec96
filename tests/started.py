"""Clusters of processes that run for as long as a test or a fixture needs them."""

from collections.abc import Iterator
from contextlib import contextmanager

from jepsen_like.real.local_cluster import LocalCluster

__all__ = ["started"]


@contextmanager
def started(cluster: LocalCluster) -> Iterator[LocalCluster]:
    """Ready when it is entered; stopped in good order in the end, whatever happened."""
    try:
        cluster.start_all()
        cluster.wait_ready()
        yield cluster
    finally:
        cluster.stop_all()
