"""`quorumlab down`: stop every process of a cluster, also those whose `up` is gone."""

import argparse
import os
import signal
import sys
import time

from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import is_alive
from quorumlab.output import print_json, say
from quorumlab.verbs.common import add_directory_option, add_format_option, open_cluster

__all__ = ["add_options", "run"]

_UP_STOPS_SECONDS = 30.0


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Stop every process of the cluster in --dir in good order, also those whose "
        "`up` is gone. The data stays."
    )
    add_directory_option(parser)
    add_format_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    cluster = open_cluster(args)
    directory = cluster.layout.directory
    ran = list(cluster.running())
    _stop_watcher(cluster)
    killed = cluster.stop_all()
    if args.format != "table":
        stopped = [node_id for node_id in ran if node_id not in killed]
        told = {"directory": str(directory), "stopped": stopped, "killed": killed}
        print_json(told, form=args.format)
    elif killed:
        say(f"killed, because they did not stop: {killed}", sys.stderr)
    else:
        say(f"{'stopped' if ran else 'nothing ran'}; the data stays in {directory}")
    return 1 if killed else 0


def _stop_watcher(cluster: LocalCluster) -> None:
    """An `up` that watches the cluster is asked to stop it, and itself."""
    watcher = cluster.lock().owner()
    if watcher is None or watcher.pid == os.getpid():
        return
    os.kill(watcher.pid, signal.SIGTERM)
    deadline = time.monotonic() + _UP_STOPS_SECONDS
    while is_alive(watcher):
        if time.monotonic() > deadline:
            raise ClusterError(f"process {watcher.pid} runs the cluster and does not stop")
        time.sleep(0.05)
