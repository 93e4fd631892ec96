"""File descriptors run out: whatever a node would open next, it cannot.

Connections that it has go on. One that is only starting could not even load itself: it is left
alone. The proof is that it answered nobody new, or complained; one that is
killed or paused as well proves nothing by its silence. One that has ended, since it could not store
what it had to, is started again.
"""

import os
import resource
import time
from collections.abc import Sequence
from pathlib import Path

from jepsen_like.faults import Fault, Injected
from jepsen_like.in_force import InForce, proof_of
from jepsen_like.real.injection.node_log import NodeLog
from jepsen_like.real.injection.processes import is_stopped, running, start_again
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster

__all__ = ["FdExhaustion"]

_EXHAUSTED = ("Too many open files", "out of system resource")
_ANSWER_SECONDS = 0.5
_LOOKS = 4
_LOOK_SECONDS = 0.05
Limit = tuple[int, int]


class FdExhaustion:
    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    def why_not(self) -> str:
        return "" if Path("/proc/self/fd").exists() else "needs /proc"

    def inject(self, fault: Fault, targets: Sequence[int]) -> Injected:
        cluster = self._cluster
        processes = running(cluster, targets)
        starting = [node_id for node_id in processes if not _answers(cluster, node_id)]
        if starting:
            raise ClusterError(
                f"no node may be starting, and {starting} may be: it does not answer"
            )
        logs = {node_id: NodeLog(cluster.layout.node(node_id).log) for node_id in processes}
        limits = {node_id: _close_the_door(each.pid) for node_id, each in processes.items()}
        seen: list[str] = []

        def heal() -> None:
            for node_id, process in processes.items():
                lines = logs[node_id].lines_with(_EXHAUSTED)
                is_there = cluster.running().get(node_id) == process
                if lines:
                    seen.append(f"node {node_id}: {lines[0]}")
                elif is_there and not is_stopped(process.pid) and not _answers(cluster, node_id):
                    seen.append(f"node {node_id} took no new connection")
                if is_there:
                    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, limits[node_id])
            for gone in cluster.exited():
                if processes.get(gone.node_id) == gone.process:
                    start_again(cluster, gone.node_id)

        return InForce(list(processes), heal=heal, prove=lambda: proof_of(seen))


def _answers(cluster: LocalCluster, node_id: int) -> bool:
    return cluster.ask(cluster.layout.node(node_id), "/livez", _ANSWER_SECONDS)[0] == 200


def _close_the_door(pid: int) -> Limit:
    """No descriptor may be above those that are open; the limits as they were.

    Looked at more than once: what is closed meanwhile, as the connection that asked whether the
    node is up, leaves a place that the next one could take.
    """
    _, hard = before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    for _ in range(_LOOKS):
        lowest_free = _lowest_free({int(name) for name in os.listdir(f"/proc/{pid}/fd")})
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest_free, hard))
        time.sleep(_LOOK_SECONDS)
    return before


def _lowest_free(taken: set[int]) -> int:
    """The kernel gives this one next: a limit there refuses it, holes below it there are none."""
    return next(number for number in range(len(taken) + 1) if number not in taken)
