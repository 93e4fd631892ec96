"""Faults of whole processes: killed, stopped, paused, restarted, or out of file descriptors.

The proof is what the operating system says: that process is gone and another one runs, or it was
seen stopped. A node without free descriptors keeps the connections that it has, and can open
nothing else. The proof is that it answered nobody new, or complained; one that is killed or paused
as well proves nothing by its silence. A node that is only starting could not even load itself: it
is left alone. A node that has ended, since it could not store what it had to, is started again.
"""

import os
import resource
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path

from jepsen_like.faults.fault import Course, Fault, in_force
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import ProcessId, await_value, state_of

__all__ = [
    "NodeLog",
    "complaints",
    "down",
    "exhaust",
    "kill",
    "logs_of",
    "pause",
    "restart",
    "restart_all",
    "running",
    "start_again",
    "stop",
]

_BYTES_MAX = 4 << 20


class NodeLog:
    """The log of a node from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = path.stat().st_size if path.exists() else 0

    def lines_with(self, words: Collection[str]) -> list[str]:
        """The lines that hold any of the words."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._start)
            lines = file.read(_BYTES_MAX).decode(errors="replace").splitlines()
        return [line for line in lines if any(word in line for word in words)]


_STATE_SECONDS = 1.0  # for the kernel to stop all threads of a process
_READY_SECONDS = 20.0
_EXHAUSTED = ("Too many open files", "out of system resource")
_ANSWER_SECONDS = 0.5
_PATIENCE_SECONDS = 5.0  # a busy machine is no node that starts
_LOOKS = 4
_LOOK_SECONDS = 0.05
Limit = tuple[int, int]


def running(cluster: LocalCluster, targets: Sequence[int]) -> dict[int, ProcessId]:
    """The processes of `targets` that run. Raises ClusterError if none does."""
    alive = {node: process for node, process in cluster.running().items() if node in targets}
    if not alive:
        raise ClusterError(f"no node of {list(targets)} is running")
    return alive


def logs_of(cluster: LocalCluster, node_ids: Iterable[int]) -> dict[int, NodeLog]:
    return {node_id: NodeLog(cluster.layout.node(node_id).log) for node_id in node_ids}


def complaints(logs: Mapping[int, NodeLog], words: Collection[str]) -> list[str]:
    """The first line of each node that holds any of the words."""
    said = {node_id: log.lines_with(words) for node_id, log in logs.items()}
    return [f"node {node_id}: {lines[0]}" for node_id, lines in said.items() if lines]


def start_again(cluster: LocalCluster, node_id: int) -> None:
    """Unless it runs: another fault that has healed may have started it."""
    if cluster.process(cluster.layout.node(node_id)) is None:
        cluster.layout.node(node_id).pid_file.unlink(missing_ok=True)
        cluster.start(node_id)


def restart(
    cluster: LocalCluster,
    node_ids: Iterable[int],
    meanwhile: Callable[[int], object] = lambda node_id: None,
) -> None:
    """Kill each that runs, and start it again; `meanwhile` is called while it is down."""
    for node_id in node_ids:
        if node_id in cluster.running():
            cluster.kill(node_id)
        try:
            meanwhile(node_id)
        finally:
            start_again(cluster, node_id)


def stop(cluster: LocalCluster, node_id: int) -> str:
    """As an operator does: it hands over what it leads, unless that takes too long; how it went."""
    try:
        cluster.stop(node_id)
    except ClusterError:
        if cluster.process(cluster.layout.node(node_id)) is not None:
            raise
        return "did not stop in time, and was killed"
    return "stopped"


def kill(cluster: LocalCluster, node_id: int) -> str:
    """The system keeps what was written, synced or not; how it went."""
    cluster.kill(node_id)
    return "died by SIGKILL"


@in_force
def down(
    cluster: LocalCluster,
    end: Callable[[LocalCluster, int], str],
    fault: Fault,
    targets: Sequence[int],
) -> Course:
    """A process ends, by `kill` or by `stop`, and is started again when the fault heals."""
    before = running(cluster, targets)
    how = {node_id: end(cluster, node_id) for node_id in before}
    gone = [node_id for node_id in before if node_id not in cluster.running()]
    yield list(before)
    for node_id in before:
        start_again(cluster, node_id)
    return [f"node {each} (process {before[each].pid}) {how[each]}" for each in gone]


@in_force
def pause(cluster: LocalCluster, fault: Fault, targets: Sequence[int]) -> Course:
    """SIGSTOP, as a long collection of garbage: connections stay, nothing is said, time goes on."""
    paused = running(cluster, targets)
    for node_id in paused:
        cluster.pause(node_id)
    began = time.monotonic()
    stopped = [
        node_id
        for node_id, process in paused.items()
        if await_value(partial(is_stopped, process.pid), _STATE_SECONDS, pause_seconds=0.005)
    ]
    yield list(paused)
    seconds = time.monotonic() - began
    for node_id, process in paused.items():
        if cluster.running().get(node_id) == process:
            cluster.resume(node_id)
    return [f"node {each} stood still for {seconds:.1f} s" for each in stopped]


def is_stopped(pid: int) -> bool:
    """Whether it stands still now."""
    return state_of(Path(f"/proc/{pid}/stat")) == "T"


@in_force
def restart_all(cluster: LocalCluster, fault: Fault, targets: Sequence[int]) -> Course:
    """One node after the other is stopped in good order and started, as for an upgrade.

    Waits for a node to be ready before the next one goes. Healing ends it early.
    """
    before = running(cluster, targets)
    enough = threading.Event()
    thread = threading.Thread(
        target=_restart_each, args=(cluster, list(before), enough), name="rolling-restart"
    )
    thread.start()
    yield list(before)
    enough.set()
    thread.join()
    for node_id in before:
        start_again(cluster, node_id)
    now = cluster.running()
    return [
        f"node {each} runs anew as process {now[each].pid}"
        for each, process in before.items()
        if each in now and now[each] != process
    ]


def _restart_each(cluster: LocalCluster, node_ids: Sequence[int], enough: threading.Event) -> None:
    def ended_early(_: str) -> None:
        if enough.is_set():
            raise ClusterError("the fault was healed")

    for node_id in node_ids:
        try:
            ended_early("")
            stop(cluster, node_id)
            start_again(cluster, node_id)
            cluster.wait_ready(_READY_SECONDS, (node_id,), ended_early)
        except ClusterError:
            continue  # another fault has it: it is not ready, or gone; the next one's turn


@in_force
def exhaust(cluster: LocalCluster, fault: Fault, targets: Sequence[int]) -> Course:
    processes = running(cluster, targets)
    starting = [each for each in processes if not _answers(cluster, each, _PATIENCE_SECONDS)]
    if starting:
        raise ClusterError(f"no node may be starting, and {starting} may be: it does not answer")
    logs = logs_of(cluster, processes)
    limits = {node_id: _close_the_door(each.pid) for node_id, each in processes.items()}
    yield list(processes)
    seen: list[str] = []
    for node_id, process in processes.items():
        said = complaints({node_id: logs[node_id]}, _EXHAUSTED)
        is_there = cluster.running().get(node_id) == process
        seen += said
        if (
            not said
            and is_there
            and not is_stopped(process.pid)
            and not _answers(cluster, node_id, _ANSWER_SECONDS)
        ):
            seen.append(f"node {node_id} took no new connection")
        if is_there:
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, limits[node_id])
    for gone in cluster.exited():
        if processes.get(gone.node_id) == gone.process:
            start_again(cluster, gone.node_id)
    return seen


def _answers(cluster: LocalCluster, node_id: int, timeout_seconds: float) -> bool:
    return cluster.ask(cluster.layout.node(node_id), "/livez", timeout_seconds)[0] == 200


def _close_the_door(pid: int) -> Limit:
    """No descriptor may be above those that are open; the limits as they were.

    Looked at more than once: what is closed meanwhile, as the connection that asked whether the
    node is up, leaves a place that the next one could take.
    """
    _, hard = before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    for _ in range(_LOOKS):
        taken = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
        # The kernel gives the lowest free one next: a limit there refuses it.
        lowest_free = next(number for number in count() if number not in taken)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest_free, hard))
        time.sleep(_LOOK_SECONDS)
    return before
