"""`quorumlab node-stop`, `node-start`, `node-kill`: one node of the cluster in --dir."""

import argparse
import math
import sys
import time
from collections.abc import Callable

from jepsen_like.installation import command
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.interrupts import Interrupt, interrupts
from quorumlab.output import Progress, print_json, say, say_if_heard
from quorumlab.stopping import stop_node
from quorumlab.verbs.common import add_directory_option, add_format_option, open_cluster

__all__ = ["add_kill_options", "add_start_options", "add_stop_options"]

_READY_SECONDS = 30.0
_SILENT_SECONDS = 3.0
_Action = Callable[[LocalCluster, int], str]  # returns the state of the node, for people


def add_stop_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser, _stop, "Stop one node of the cluster in --dir in good order.")


def add_start_options(parser: argparse.ArgumentParser) -> None:
    _add_options(
        parser, _start, "Start one node of the cluster in --dir, and wait until it is ready."
    )


def add_kill_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser, _kill, "Kill one node of the cluster in --dir with SIGKILL.")


def _add_options(parser: argparse.ArgumentParser, action: _Action, description: str) -> None:
    parser.description = description
    parser.add_argument("id", type=int, metavar="ID", help="the node's id, as `status` shows it")
    add_directory_option(parser)
    add_format_option(parser)
    parser.set_defaults(run=_with_cluster(action))


def _with_cluster(action: _Action) -> Callable[..., int]:
    def run(args: argparse.Namespace) -> int:
        cluster = open_cluster(args)
        state = action(cluster, args.id)
        process = cluster.process(cluster.layout.node(args.id))
        pid = None if process is None else process.pid
        if args.format == "table":
            say(f"node {args.id}: {state}" + ("" if pid is None else f", process {pid}"))
        else:
            print_json({"node_id": args.id, "state": state, "pid": pid}, form=args.format)
        return 0

    return run


def _stop(cluster: LocalCluster, node_id: int) -> str:
    if cluster.process(cluster.layout.node(node_id)) is None:
        return "not running"
    cluster.stop(node_id)
    return "stopped"


def _start(cluster: LocalCluster, node_id: int) -> str:
    """Ctrl-C stops the node again, whenever it comes; one that is late is left running."""
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
            stop = command("node-stop", node_id, "--dir", cluster.layout.directory)
            raise ClusterError(f"{error}\n  it is left running; stop it with `{stop}`") from error
        finally:
            progress.done()
    return "ready"


class _Waiting:
    """Tells what is waited for: always on a terminal, elsewhere once if it takes long."""

    def __init__(self, node_id: int, interrupted: Interrupt) -> None:
        self._node_id = node_id
        self._interrupted = interrupted
        self._progress = Progress()
        self._told_after = time.monotonic() + _SILENT_SECONDS

    def __call__(self, text: str) -> None:
        if self._interrupted.happened:
            raise KeyboardInterrupt
        self._progress(text)
        if time.monotonic() > self._told_after and not self._progress.is_shown:
            self._told_after = math.inf
            what = f"waiting up to {_READY_SECONDS:.0f} s for node {self._node_id}"
            say_if_heard(f"{what}: {text}", sys.stderr)

    def done(self) -> None:
        self._progress.done()


def _kill(cluster: LocalCluster, node_id: int) -> str:
    cluster.kill(node_id)
    return "killed"
