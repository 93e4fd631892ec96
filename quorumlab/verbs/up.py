"""`quorumlab up`: start a local cluster, say when it is ready, and watch it until Ctrl-C.

The options of `quorumlab demo` are here, too: what it does needs a Kafka client.
"""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jepsen_like.installation import command
from jepsen_like.real.layout import FAST_SETTINGS, ClusterLayout
from jepsen_like.real.local_cluster import Exited, LocalCluster
from jepsen_like.real.processes import DirectoryLock, ProcessId
from jepsen_like.real.secured import ADMIN
from quorumlab.cluster_status import describe
from quorumlab.config import parse_properties
from quorumlab.interrupts import Interrupt, interrupts
from quorumlab.output import Progress, answer, number_of, say, say_if_heard, say_settings
from quorumlab.verbs.common import DEFAULT_DIRECTORY
from quorumlab.verbs.nodes import stop_all, stopping
from quorumlab.verbs.up_cluster import cluster_asked_for, refuse_what_cannot_be

__all__ = ["UNREAD", "client_lines", "run", "secure_if_asked"]

UNREAD = "nobody reads the output any more: stopping the cluster"
_WATCH_SECONDS = 0.25


def run(args: SimpleNamespace) -> int:
    directory = args.dir or Path(DEFAULT_DIRECTORY)
    refuse_what_cannot_be(args, directory)
    with interrupts() as interrupted, DirectoryLock(directory.resolve()):
        return _run(args, cluster_asked_for(args, directory), interrupted)


def _run(args: SimpleNamespace, cluster: LocalCluster, interrupted: Interrupt) -> int:
    began = time.monotonic()
    quiet = args.format != "table"
    if not quiet:
        _announce(cluster)
    secure_if_asked(cluster)
    _start(cluster, interrupted)
    seconds = time.monotonic() - began
    if args.detach:
        _leave_running(cluster, args, seconds)
        return 0
    try:
        _tell(cluster, args.format, seconds)
        if not quiet:
            say("Ctrl-C stops it")
        _watch(cluster, interrupted)
    except OSError as error:  # as in `up | head -3`: what cannot be followed is not left behind
        unread = isinstance(error, BrokenPipeError)
        say_if_heard(UNREAD if unread else f"stopping the cluster: {error}", sys.stderr)
        _stop(cluster, quiet=quiet)
        raise
    return _stop(cluster, quiet=quiet)


def _tell(cluster: LocalCluster, form: str, seconds: float) -> None:
    described = describe(cluster)
    ready = f"ready in {seconds:.1f} s: {_controller(described)}"
    lines = [ready, f"bootstrap servers: {described['bootstrap_servers']}"]
    answer(form, described, [*lines, *client_lines(cluster.layout)])


def secure_if_asked(cluster: LocalCluster) -> None:
    """A plain cluster needs no certificates, nor what makes them."""
    if cluster.layout.security:
        from quorumlab.verbs.secured_cluster import secure

        secure(cluster)


def client_lines(layout: ClusterLayout) -> list[str]:
    """What clients of a secured cluster need, to paste."""
    if not layout.security:
        return []
    files = layout.security_files
    return [
        f"security: {layout.security}, as {ADMIN}; quorumlab finds it by --dir",
        f"Kafka's tools: --command-config {files.client}",
        f"clients of librdkafka: {files.librdkafka}",
    ]


def _leave_running(cluster: LocalCluster, args: SimpleNamespace, seconds: float) -> None:
    """Says so on stderr if nobody reads stdout."""
    stop = command("down", "--dir", args.dir or DEFAULT_DIRECTORY)
    left = f"left running; stop it with `{stop}`"
    try:
        _tell(cluster, args.format, seconds)
        if args.format == "table":
            say(left)
    except OSError:
        say_if_heard(left, sys.stderr)
        raise


def _controller(described: Mapping[str, Any]) -> str:
    if described["active_controller"] is None:
        return f"{described['design']}, which has no controller"
    return (
        f"active controller {described['active_controller']}, epoch {described['controller_epoch']}"
    )


def _start(cluster: LocalCluster, interrupted: Interrupt) -> None:
    """Start what does not run and wait until all is ready; on failure, what was started stops."""
    progress = Progress()

    def show(text: str) -> None:
        if interrupted.happened:
            raise KeyboardInterrupt
        progress(text)

    adopted = tuple(cluster.running())
    try:
        cluster.start_all()
        cluster.wait_ready(progress=show)
    except BaseException as error:
        stop_all(cluster, but=adopted)
        if isinstance(error, KeyboardInterrupt):
            say_if_heard("interrupted: what was started is stopped again", sys.stderr)
        raise
    finally:
        progress.done()


def _announce(cluster: LocalCluster) -> None:
    layout = cluster.layout
    kind, kinds = ("combined node", "") if layout.combined else ("process", "processes")
    adopted = cluster.running()
    if adopted:
        say(f"already running, taken over: nodes {', '.join(map(str, adopted))}")
    down = {node.id for node in layout.nodes} - adopted.keys()
    zookeeper = cluster.zookeeper
    servers = () if zookeeper is None else zookeeper.servers
    to_start = {
        "ZooKeeper": sum(zookeeper.process(each) is None for each in servers) if zookeeper else 0,
        "controller": sum(node.id in down for node in layout.controllers),
        "broker": sum(node.id in down for node in layout.brokers),
    }
    parts = [number_of(count, name) for name, count in to_start.items() if count]
    nodes = "" if zookeeper is not None else f" as {number_of(len(down), kind, kinds)}"
    if parts:
        say(f"starting {' and '.join(parts)}{nodes} in {layout.directory}")
    say_settings(_timeouts(cluster))


def _timeouts(cluster: LocalCluster) -> dict[str, str]:
    """Reads the first node's file: settings are written once, and may have been changed by hand."""
    written = cluster.layout.nodes[0].config
    values = parse_properties(written.read_text()) if written.exists() else cluster.settings
    return {key: values[key] for key in FAST_SETTINGS if key in values}


def _watch(cluster: LocalCluster, interrupted: Interrupt) -> None:
    """Tells of every process that dies until a signal comes, and starts none again."""
    reported: set[ProcessId] = set()
    while not interrupted.happened:
        for gone in cluster.exited():
            if gone.process not in reported:
                reported.add(gone.process)
                _report(gone, cluster.layout.directory)
        time.sleep(_WATCH_SECONDS)


def _stop(cluster: LocalCluster, *, quiet: bool) -> int:
    """Goes on if nobody reads it: Ctrl-C also ends the `tee` behind `up | tee`."""
    if not quiet:
        say_if_heard(stopping(cluster, cluster.stop_seconds()))
    killed = stop_all(cluster)
    if killed:
        say_if_heard(f"killed, because they did not stop: {killed}", sys.stderr)
        return 1
    if not quiet:
        say_if_heard(f"stopped; the data stays in {cluster.layout.directory}")
    return 0


def _report(gone: Exited, directory: Path) -> None:
    say(f"node {gone.node_id} died; it is not started again. Its last lines:", sys.stderr)
    for line in gone.last_lines:
        say(f"  {line}", sys.stderr)
    say(f"  the whole log: {gone.log}", sys.stderr)
    start = command("node-start", gone.node_id, "--dir", directory)
    say(f"  start it with `{start}`", sys.stderr)
