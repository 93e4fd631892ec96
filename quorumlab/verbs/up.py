"""`quorumlab up`: start a local cluster, say when it is ready, and watch it until Ctrl-C.

An impossible cluster is refused before anything is written: a directory with a cluster that can
never start is nothing to leave behind.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from jepsen_like.installation import command
from jepsen_like.real.layout import CLUSTER_FILE, FAST_SETTINGS, plan
from jepsen_like.real.local_cluster import Exited, LocalCluster
from jepsen_like.real.processes import DirectoryLock, ProcessId
from jepsen_like.real.shape import why_no_engine
from jepsen_like.real.zookeeper import missing_reason
from quorum.node.engines import NATIVE
from quorumlab.arguments import UsageError, declare
from quorumlab.cluster_status import describe
from quorumlab.config import ConfigError, node_config, parse_properties
from quorumlab.interrupts import Interrupt, interrupts
from quorumlab.output import (
    Progress,
    answer,
    number_of,
    refuse_other_directory,
    say,
    say_if_heard,
    say_settings,
)
from quorumlab.verbs.common import DEFAULT_DIRECTORY, DIRECTORY, FORMAT, in_bounds, one_of
from quorumlab.verbs.nodes import stop_all
from wire.zk.designs import DESIGNS

__all__ = ["UNREAD", "add_options", "cluster_asked_for", "refuse_what_cannot_be", "run"]

UNREAD = "nobody reads the output any more: stopping the cluster"
_WATCH_SECONDS = 0.25


def add_options(parser: argparse.ArgumentParser) -> None:
    about = (
        "Start the cluster in --dir, a new one if there is none, and watch it. Ctrl-C "
        "stops it in good order; its data stays, and the next `up` goes on with it."
    )
    table = f"""
        --controllers N  default: 3
        --brokers N  default: 3
        --combined  both roles in each process
        --dynamic  voters that live in the log: `quorum add-controller`, `quorum remove-controller`
        --design DESIGN  who keeps the metadata: {", ".join(DESIGNS_OF_UP)} (default: quorum, or \
          what --dir holds)
        --engine ENGINE  who replicates the metadata of the quorum design: native (default), or \
          raftos
        --zookeepers N  servers of the ZooKeeper designs (default: 1)
        --zookeeper-connect HOST:PORT  a ZooKeeper that runs already, in the place of one of the \
          cluster's own
        --port P  the first port of a new cluster (default: any free)
        --detach  leave it running in the background
        --set KEY=VALUE [*]  a setting of every node of a new cluster (may be repeated)
        {DIRECTORY}
        {FORMAT}"""
    declare(parser, run, table, about)


def run(args: argparse.Namespace) -> int:
    directory = args.dir or Path(DEFAULT_DIRECTORY)
    refuse_what_cannot_be(args, directory)
    with interrupts() as interrupted, DirectoryLock(directory.resolve()):
        return _run(args, cluster_asked_for(args, directory), interrupted)


def _run(args: argparse.Namespace, cluster: LocalCluster, interrupted: Interrupt) -> int:
    began = time.monotonic()
    quiet = args.format != "table"
    if not quiet:
        _announce(cluster)
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
    answer(form, described, [ready, f"bootstrap servers: {described['bootstrap_servers']}"])


def _leave_running(cluster: LocalCluster, args: argparse.Namespace, seconds: float) -> None:
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
        say_if_heard("stopping")
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


# --- the cluster that is asked for ----------------------------------------------------------


_QUORUM = "quorum"
DESIGNS_OF_UP = (_QUORUM, *DESIGNS)
_FIRST_PORT_MAX = 65_000  # the largest cluster takes some 400 from there on
_OF_EACH_NODE = (
    "advertised.listeners",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "listeners",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
    "node.id",
    "process.roles",
    "quorumlab.engine",
    "quorumlab.http.listener",
    "quorumlab.raftos.voters",
    "zookeeper.connect",
)


def refuse_what_cannot_be(args: argparse.Namespace, directory: Path) -> None:
    """Raises UsageError or ClusterError; warns of what is not advisable. Writes nothing."""
    is_there = (directory / CLUSTER_FILE).exists()
    cluster = LocalCluster.open(directory) if is_there else None
    design = args.design or (_QUORUM if cluster is None else cluster.layout.design)
    _refuse_what_is_not_there(args, design)
    if cluster is None or cluster.layout.zookeepers:
        _refuse_without_zookeeper(args, design)
    settings = _settings(args.set)
    if cluster is not None:
        _refuse_changes(cluster, args.port, settings)
        return
    if not (directory / "up.lock").exists():  # what an `up` has left that was killed is its own
        left = ("cluster.tmp",)  # of one whose disk was full
        refuse_other_directory(directory, option="--dir", holds=CLUSTER_FILE, but=left)
    _check(settings)
    controllers = args.controllers
    if controllers is not None and controllers % 2 == 0:
        say(
            f"warning: {controllers} controllers tolerate no more failures than {controllers - 1}, "
            f"for their majority is larger: take {controllers - 1} or {controllers + 1}",
            sys.stderr,
        )


def cluster_asked_for(args: argparse.Namespace, directory: Path) -> LocalCluster:
    """Laid out in its directory, not started."""
    return LocalCluster.create(
        directory,
        controllers=args.controllers,
        brokers=args.brokers,
        combined=args.combined,
        first_voters=(args.controllers or 3) if args.dynamic else 0,
        first_port=args.port or 0,
        settings=_settings(args.set),
        design=args.design,
        engine=args.engine,
        zookeepers=args.zookeepers,
        zookeeper_connect=args.zookeeper_connect or "",
    )


def _refuse_what_is_not_there(args: argparse.Namespace, design: str) -> None:
    one_of(DESIGNS_OF_UP, "--design", design)
    why = why_no_engine(
        args.engine or NATIVE,
        design=design,
        controllers=args.controllers or 3,
        dynamic=args.dynamic,
    )
    if why is not None:
        raise UsageError(f"--engine {args.engine}: {why}")
    _refuse_what_the_design_has_not(args, design)
    in_bounds(args, controllers=(1, 99), brokers=(1, 99), port=(1, _FIRST_PORT_MAX))


def _refuse_what_the_design_has_not(args: argparse.Namespace, design: str) -> None:
    count, connect = args.zookeepers, args.zookeeper_connect
    if design == _QUORUM:
        for option, value in (("zookeepers", count), ("zookeeper-connect", connect)):
            if value is not None:
                raise UsageError(f"--{option}: the quorum design has no ZooKeeper")
        return
    if args.controllers is not None or args.combined or args.dynamic:
        raise UsageError(
            f"--controllers, --combined, --dynamic: in {design} no node is set apart to be "
            "the controller; leave them out"
        )
    if count is not None and connect is not None:
        raise UsageError("--zookeepers, --zookeeper-connect: its own, or another; leave one out")
    in_bounds(args, zookeepers=(1, 9))
    servers = (server.rpartition(":") for server in (connect or "h:1").split(","))
    if not all(host and port.isdecimal() for host, _, port in servers):
        raise UsageError(
            f"--zookeeper-connect {connect}: expected HOST:PORT, or several with commas between"
        )


def _refuse_without_zookeeper(args: argparse.Namespace, design: str) -> None:
    """Only a ZooKeeper of the cluster's own needs what starts it."""
    if design == _QUORUM or args.zookeeper_connect is not None:
        return
    missing = missing_reason()
    if missing is not None:
        raise UsageError(f"--design {design}: {missing}")


def _settings(texts: Iterable[str]) -> dict[str, str]:
    settings = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator:
            raise UsageError(f"--set {text}: expected KEY=VALUE")
        if key in _OF_EACH_NODE:
            raise UsageError(f"--set {text}: each node has its own {key}, and `up` writes it")
        settings[key] = value
    return settings


def _check(settings: Mapping[str, str]) -> None:
    """Checks the settings as a node of both roles would."""
    layout = plan(Path("/"), cluster_id="", controllers=1, brokers=1, combined=True, ports=count(1))
    try:
        config = node_config(parse_properties(layout.properties(layout.nodes[0], settings)))
    except ConfigError as error:
        raise UsageError(f"--set {error}") from error
    for warning in config.warnings:
        say(f"warning: {warning}", sys.stderr)


def _refuse_changes(cluster: LocalCluster, port: int | None, settings: Mapping[str, str]) -> None:
    """The same options again are no change."""
    directory = cluster.layout.directory
    first_port = cluster.layout.nodes[0].port
    if port not in (None, first_port):
        raise UsageError(
            f"{directory} holds a cluster whose first port is {first_port}, not {port}: use "
            "another --dir, or leave the option out"
        )
    for node in cluster.layout.nodes:
        written = parse_properties(node.config.read_text()) if node.config.exists() else settings
        for key, value in settings.items():
            if written.get(key) != value:
                raise UsageError(
                    f"{directory} holds a cluster already: --set {key}={value} is for a new one; "
                    f"change it in each node's file, as {node.config}, while the node is down"
                )
