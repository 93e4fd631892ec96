"""`quorumlab down`, `node-stop`, `node-start` and `node-kill`: the nodes of the cluster in --dir.

Another Ctrl-C while nodes stop in good order kills them: an impatient user should not have to look
for processes that were left behind.
"""

import math
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from jepsen_like.installation import command
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import await_value, is_alive
from quorumlab.interrupts import Interrupt, interrupts
from quorumlab.output import Progress, answer, number_of, say, say_if_heard
from quorumlab.verbs.common import DEFAULT_DIRECTORY

__all__ = ["down", "kill", "open_cluster", "start", "stop", "stop_all", "stopping"]

_READY_SECONDS = 30.0
_SILENT_SECONDS = 3.0
_UP_STOPS_SECONDS = 30.0
_Action = Callable[[LocalCluster, int], str]  # returns the state of the node, for people


def open_cluster(args: SimpleNamespace) -> LocalCluster:
    return LocalCluster.open(args.dir or Path(DEFAULT_DIRECTORY))


# --- one node ---------------------------------------------------------------------------------


def stop(args: SimpleNamespace) -> int:
    return _run(_stop, args)


def start(args: SimpleNamespace) -> int:
    return _run(_start, args)


def kill(args: SimpleNamespace) -> int:
    return _run(_kill, args)


def _run(action: _Action, args: SimpleNamespace) -> int:
    cluster = open_cluster(args)
    state = action(cluster, args.id)
    process = cluster.process(cluster.layout.node(args.id))
    pid = None if process is None else process.pid
    told = f"node {args.id}: {state}" + ("" if pid is None else f", process {pid}")
    answer(args.format, {"node_id": args.id, "state": state, "pid": pid}, [told])
    return 0


def _stop(cluster: LocalCluster, node_id: int) -> str:
    if cluster.process(cluster.layout.node(node_id)) is None:
        return "not running"
    cluster.stop(node_id)
    return "stopped"


def _kill(cluster: LocalCluster, node_id: int) -> str:
    cluster.kill(node_id)
    return "killed"


def _start(cluster: LocalCluster, node_id: int) -> str:
    """Ctrl-C stops the node again, whenever it comes; a node that is late is left running."""
    with interrupts() as interrupted:
        cluster.start(node_id)
        progress = _Waiting(node_id, interrupted)
        try:
            cluster.wait_ready(_READY_SECONDS, nodes=(node_id,), progress=progress)
        except KeyboardInterrupt:
            progress.done()
            stop_node(cluster, node_id)
            say_if_heard(f"interrupted: node {node_id} is stopped again", sys.stderr)
            raise
        except ClusterError as error:
            if cluster.process(cluster.layout.node(node_id)) is None:
                raise
            raise ClusterError(f"{error}\n  {_left_running(cluster, node_id)}") from error
        finally:
            progress.done()
    return "ready"


def _left_running(cluster: LocalCluster, node_id: int) -> str:
    layout = cluster.layout
    stop = command("node-stop", node_id, "--dir", layout.directory)
    told = f"it is left running; stop it with `{stop}`"
    if layout.controllers and not any(map(cluster.process, layout.controllers)):
        start = command("up", "--dir", layout.directory)
        told += f"\n  no controller runs; `{start}` starts all that is down"
    return told


class _Waiting:
    """Tells what is waited for: always on a terminal, elsewhere once if it takes long."""

    def __init__(self, node_id: int, interrupted: Interrupt) -> None:
        self._node_id = node_id
        self._interrupted = interrupted
        self._progress = Progress()
        self.done = self._progress.done
        self._told_after = time.monotonic() + _SILENT_SECONDS

    def __call__(self, text: str) -> None:
        if self._interrupted.happened:
            raise KeyboardInterrupt
        self._progress(text)
        if time.monotonic() > self._told_after and not self._progress.is_shown:
            self._told_after = math.inf
            what = f"waiting up to {_READY_SECONDS:.0f} s for node {self._node_id}"
            say_if_heard(f"{what}: {text}", sys.stderr)


def stop_node(cluster: LocalCluster, node_id: int) -> None:
    """Raises ClusterError if it had to be killed."""
    with _killed_by_another_interrupt(cluster, {node_id}):
        cluster.stop(node_id)


# --- all of them ------------------------------------------------------------------------------


def down(args: SimpleNamespace) -> int:
    cluster = open_cluster(args)
    directory = cluster.layout.directory
    ran = list(cluster.running())
    seconds = cluster.stop_seconds()
    if ran:
        say(stopping(cluster, seconds), sys.stderr)
    _stop_watcher(cluster, seconds)
    killed = cluster.stop_all()
    if killed and args.format == "table":
        say(f"killed, because they did not stop: {killed}", sys.stderr)
        return 1
    stopped = [node_id for node_id in ran if node_id not in killed]
    told = {"directory": str(directory), "stopped": stopped, "killed": killed}
    line = f"{'stopped' if ran else 'nothing ran'}; the data stays in {directory}"
    answer(args.format, told, [line])
    return 1 if killed else 0


def stopping(cluster: LocalCluster, stop_seconds: float) -> str:
    """What `stop_all` is about to do, and how long that takes at most."""
    nodes = number_of(len(cluster.running()), "node")
    return f"stopping {nodes} in good order, within {stop_seconds:.0f} s"


def _stop_watcher(cluster: LocalCluster, stop_seconds: float) -> None:
    """An `up` that watches the cluster is asked to stop it, and itself."""
    watcher = cluster.lock().owner()
    if watcher is None or watcher.pid == os.getpid():
        return
    os.kill(watcher.pid, signal.SIGTERM)
    if not await_value(lambda: not is_alive(watcher), _UP_STOPS_SECONDS + stop_seconds):
        raise ClusterError(f"process {watcher.pid} runs the cluster and does not stop")


def stop_all(cluster: LocalCluster, but: Collection[int] = ()) -> list[int]:
    """Returns the ids of nodes that had to be killed."""
    with _killed_by_another_interrupt(cluster, {node.id for node in cluster.layout.nodes} - {*but}):
        try:
            return cluster.stop_all(but)
        except KeyboardInterrupt:
            if not but:
                cluster.kill_zookeeper()
            raise


@contextmanager
def _killed_by_another_interrupt(cluster: LocalCluster, nodes: set[int]) -> Iterator[None]:
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
    """Returns False if the node has come to its orderly end by then."""
    try:
        cluster.kill(node_id)
    except (ClusterError, ProcessLookupError):
        return False
    return True
