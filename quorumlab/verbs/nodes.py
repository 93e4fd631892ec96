"""`quorumlab node-stop`, `node-start`, `node-kill`: one node of the cluster in --dir."""

import argparse
from collections.abc import Callable

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.output import say
from quorumlab.verbs.common import add_directory_option, open_cluster

__all__ = ["add_parsers"]


def add_parsers(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    for name, action, text in (
        ("node-stop", _stop, "stop one node of --dir in good order"),
        ("node-start", _start, "start one node of --dir, and wait until it is ready"),
        ("node-kill", _kill, "kill one node of --dir with SIGKILL"),
    ):
        parser = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        parser.add_argument(
            "id", type=int, metavar="ID", help="the node's id, as `status` shows it"
        )
        add_directory_option(parser)
        parser.set_defaults(run=_with_cluster(action))


def _with_cluster(action: Callable[[LocalCluster, int], str]) -> Callable[..., int]:
    def run(args: argparse.Namespace) -> int:
        say(action(open_cluster(args), args.id))
        return 0

    return run


def _stop(cluster: LocalCluster, node_id: int) -> str:
    if cluster.process(cluster.layout.node(node_id)) is None:
        return f"node {node_id} is not running"
    cluster.stop(node_id)
    return f"node {node_id} stopped"


def _start(cluster: LocalCluster, node_id: int) -> str:
    process = cluster.start(node_id)
    cluster.wait_ready(nodes=(node_id,))
    return f"node {node_id} is ready, process {process.pid}"


def _kill(cluster: LocalCluster, node_id: int) -> str:
    cluster.kill(node_id)
    return f"node {node_id} killed"
