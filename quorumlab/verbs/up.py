"""`quorumlab up`: start a local cluster, say when it is ready, and watch it until Ctrl-C."""

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from jepsen_like.real.layout import FAST_SETTINGS
from jepsen_like.real.local_cluster import Exited, LocalCluster
from jepsen_like.real.lock import DirectoryLock
from jepsen_like.real.processes import ProcessId
from quorumlab import status
from quorumlab.output import Progress, print_json, say
from quorumlab.verbs.common import (
    DEFAULT_DIRECTORY,
    UsageError,
    add_directory_option,
    add_format_option,
)

__all__ = ["add_parser", "run"]

_WATCH_SECONDS = 0.25


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("up", help="start a local cluster")
    parser.add_argument("--controllers", type=int, default=None, metavar="N", help="default: 3")
    parser.add_argument("--brokers", type=int, default=None, metavar="N", help="default: 3")
    parser.add_argument("--combined", action="store_true", help="both roles in each process")
    parser.add_argument("--design", default="quorum", help="who keeps the metadata: quorum")
    parser.add_argument("--engine", default="native", help="the replication engine: native")
    parser.add_argument("--zookeepers", type=int, metavar="N", help="for the ZooKeeper designs")
    parser.add_argument("--port", type=int, default=0, help="the first port (default: any free)")
    parser.add_argument("--detach", action="store_true", help="leave it running in the background")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of every node"
    )
    add_directory_option(parser)
    add_format_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    _refuse_what_is_not_there(args)
    directory = args.dir or Path(DEFAULT_DIRECTORY)
    with _signals() as interrupted, DirectoryLock(directory.resolve()):
        return _run(args, _cluster(args, directory), interrupted)


def _run(args: argparse.Namespace, cluster: LocalCluster, interrupted: "Interrupt") -> int:
    began = time.monotonic()
    quiet = args.format != "table"
    if not quiet:
        _announce(cluster)
    _start(cluster, interrupted)
    described = status.describe(cluster)
    if quiet:
        print_json(described, form=args.format)
    else:
        say(
            f"ready in {time.monotonic() - began:.1f} s: active controller "
            f"{described['active_controller']}, epoch {described['controller_epoch']}"
        )
        say(f"bootstrap servers: {described['bootstrap_servers']}")
    if args.detach:
        if not quiet:
            say(
                f"left running; stop it with `quorumlab down --dir {args.dir or DEFAULT_DIRECTORY}`"
            )
        return 0
    return _watch(cluster, interrupted, quiet=quiet)


def _start(cluster: LocalCluster, interrupted: "Interrupt") -> None:
    """Start what does not run and wait until all is ready; on failure nothing is left running."""
    progress = Progress()

    def show(text: str) -> None:
        if interrupted.happened:
            raise KeyboardInterrupt
        progress(text)

    try:
        cluster.start_all()
        cluster.wait_ready(progress=show)
    except BaseException:
        cluster.stop_all()
        raise
    finally:
        progress.done()


def _announce(cluster: LocalCluster) -> None:
    layout = cluster.layout
    kinds = "combined nodes" if layout.combined else "processes"
    adopted = cluster.running()
    if adopted:
        say(f"already running, taken over: nodes {', '.join(map(str, adopted))}")
    say(
        f"starting {len(layout.controllers)} controllers and {len(layout.brokers)} brokers as "
        f"{len(layout.nodes)} {kinds} in {layout.directory}"
    )
    shorter = ", ".join(f"{key}={value}" for key, value in FAST_SETTINGS.items())
    say(f"time-outs shorter than Kafka's: {shorter}")


def _watch(cluster: LocalCluster, interrupted: "Interrupt", *, quiet: bool) -> int:
    """Until a signal: tell of every process that dies, start none again."""
    if not quiet:
        say("Ctrl-C stops it")
    reported: set[ProcessId] = set()
    known = cluster.running()
    while not interrupted.happened:
        for gone in cluster.exited(known):
            if known[gone.node_id] not in reported:
                reported.add(known[gone.node_id])
                _report(gone, cluster.layout.directory)
        known = {**known, **cluster.running()}
        time.sleep(_WATCH_SECONDS)
    if not quiet:
        say("stopping")
    killed = cluster.stop_all()
    if killed:
        say(f"killed, because they did not stop: {killed}", sys.stderr)
        return 1
    return 0


def _report(gone: Exited, directory: Path) -> None:
    say(f"node {gone.node_id} died; it is not started again. Its last lines:", sys.stderr)
    for line in gone.last_lines:
        say(f"  {line}", sys.stderr)
    say(f"  the whole log: {gone.log}", sys.stderr)
    say(f"  start it with `quorumlab node-start {gone.node_id} --dir {directory}`", sys.stderr)


def _refuse_what_is_not_there(args: argparse.Namespace) -> None:
    if args.design != "quorum":
        raise UsageError(f"--design {args.design}: only quorum is here so far")
    if args.engine != "native":
        raise UsageError(f"--engine {args.engine}: only native is here so far")
    if args.zookeepers is not None:
        raise UsageError("--zookeepers: the quorum design has no ZooKeeper")
    for name in ("controllers", "brokers"):
        count = getattr(args, name)
        if count is not None and not 1 <= count <= 99:
            raise UsageError(f"--{name} {count}: from 1 to 99")


def _cluster(args: argparse.Namespace, directory: Path) -> LocalCluster:
    settings = {}
    for text in args.set:
        key, separator, value = text.partition("=")
        if not separator:
            raise UsageError(f"--set {text}: expected KEY=VALUE")
        settings[key] = value
    return LocalCluster.create(
        directory,
        controllers=args.controllers,
        brokers=args.brokers,
        combined=args.combined,
        first_port=args.port,
        settings=settings,
    )


class Interrupt:
    """Whether SIGINT or SIGTERM has come. A second one ends the program at once."""

    def __init__(self) -> None:
        self.happened = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.happened:
            raise KeyboardInterrupt
        self.happened = True


@contextmanager
def _signals() -> Iterator[Interrupt]:
    interrupt = Interrupt()
    before = {which: signal.signal(which, interrupt) for which in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
