"""A local cluster of six processes: how long `quorumlab up` takes to be ready, and what nodes use.

Python keeps the bytecode of modules in a directory of this benchmark, as it does by default beside
them: a first start, which compiles them all, is not measured.
"""

import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import print_figure, progress
from benchmarks.peers.local import processor_seconds, resident_megabytes, scratch_directory
from jepsen_like.python_children import python_command, python_environment
from jepsen_like.real.local_cluster import LocalCluster

ROUNDS = 3
IDLE_SECONDS = 3.0


def environment(bytecode: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**python_environment(kept), "PYTHONPYCACHEPREFIX": str(bytecode)}


def up(directory: Path, bytecode: Path) -> float:
    """Seconds from the start of the command to its end, when every node is ready."""
    arguments = python_command("quorumlab", "up", "--detach", "--dir", str(directory))
    began = time.perf_counter()
    subprocess.run(
        arguments,
        env=environment(bytecode),
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=120,
    )
    return time.perf_counter() - began


def of_nodes(cluster: LocalCluster, measured: Callable[[int], float]) -> dict[str, list[float]]:
    """By role, of every node."""
    found: dict[str, list[float]] = {"controller": [], "broker": []}
    for node_id, process in cluster.running().items():
        role = "broker" if cluster.layout.node(node_id).is_broker else "controller"
        found[role].append(measured(process.pid))
    return found


def compile_all(directory: Path, bytecode: Path) -> None:
    progress("up once, so that Python has compiled every module")
    try:
        up(directory, bytecode)
    finally:
        LocalCluster.open(directory).stop_all()


def main() -> None:
    seconds: dict[str, list[float]] = {"a new": [], "the same": []}
    started: dict[str, list[float]] = {"controller": [], "broker": []}
    used: dict[str, list[float]] = {}
    with scratch_directory() as scratch:
        bytecode = scratch / "bytecode"
        compile_all(scratch / "compiling", bytecode)
        for number in range(ROUNDS):
            directory = scratch / str(number)
            for which in seconds:  # the second continues with the first one's data
                progress(f"round {number + 1} of {ROUNDS}: up, {which}")
                try:
                    seconds[which].append(up(directory, bytecode))
                    cluster = LocalCluster.open(directory)
                    for role, values in of_nodes(cluster, processor_seconds).items():
                        started[role] += values
                    if not used:
                        time.sleep(IDLE_SECONDS)
                        used = of_nodes(cluster, resident_megabytes)
                finally:
                    LocalCluster.open(directory).stop_all()
    for which, values in seconds.items():
        rounds = [round(value, 2) for value in values]
        value = statistics.median(values)
        print_figure(
            f"up until ready, {which} directory", value, "s", processes=6, of_rounds=rounds
        )
    for role, values in started.items():
        value = statistics.median(values)
        each = sorted(round(one, 2) for one in values)
        print_figure(f"processor time of a {role} until ready", value, "s", of_starts=each)
    for role, values in used.items():
        nodes = [round(value, 1) for value in values]
        value = statistics.median(values)
        print_figure(f"memory of an idle {role}", value, "MiB resident", of_nodes=nodes)
