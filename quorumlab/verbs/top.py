"""`quorumlab top`: a cluster as it is now, ours or any Kafka's, on one screen that goes on.

With --page, the same in a browser: what nodes of ours serve themselves, for any Kafka.
"""

import shutil
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

from quorumlab.arguments import Failed, UsageError
from quorumlab.client_properties import controller_settings, given_settings
from quorumlab.inspection.target import Address
from quorumlab.output import say
from quorumlab.scratch import scratch
from quorumlab.top.any_cluster import AnyCluster
from quorumlab.top.chaos_faults import ChaosFaults, run_around
from quorumlab.top.log_follower import LogFollower
from quorumlab.top.own_cluster import OwnCluster
from quorumlab.top.screen import Reader
from quorumlab.top.watching import Watching
from quorumlab.verbs.common import addresses
from quorumlab.verbs.nodes import open_cluster

__all__ = ["run"]


def run(args: SimpleNamespace) -> int:
    if args.page is not None:
        from quorumlab.verbs.top_page import serve  # has aiohttp, which is slow to load

        return serve(args)
    with (
        scratch("top") as directory,
        closing(_watching(args, directory)) as watching,
    ):
        watching.start()
        if args.once or not _has_terminal():
            return _print_once(watching)
        from quorumlab.top.terminal import show  # has rich, which is slow to load

        show(watching.lines, watching.press)
    return 0


def _has_terminal() -> bool:
    from quorumlab.top.terminal import is_interactive

    return is_interactive()


def _print_once(watching: Watching) -> int:
    watching.wait_for_all()
    width, height = shutil.get_terminal_size()
    for line in watching.lines(Reader(), width, height):
        say(line.text)
    return 0


def _watching(args: SimpleNamespace, scratch: Path) -> Watching:
    if args.bootstrap_server and args.dir:
        raise UsageError("give --bootstrap-server or --dir, not both")
    run = args.chaos
    if args.bootstrap_server:
        settings = given_settings(args.command_config)
        named = addresses(args.bootstrap_server, "--bootstrap-server")
        servers = [Address(host, port, settings) for host, port in named]
        follower = LogFollower(servers, scratch)
        return Watching(AnyCluster(servers, follower), follower, _chaos(run))
    cluster = open_cluster(args)
    layout = cluster.layout
    settings = controller_settings(layout)
    servers = [
        Address(node.host, node.controller_port, settings)
        for node in layout.controllers
        if node.controller_port is not None
    ]
    if not layout.security:  # else brokers name controllers, whom clients cannot ask
        servers = [*(Address(node.host, node.port) for node in layout.brokers), *servers]
    follower = LogFollower(servers, scratch)
    run = run or run_around(layout.directory)
    return Watching(OwnCluster(cluster, follower), follower, _chaos(run))


def _chaos(directory: Path | None) -> ChaosFaults | None:
    try:
        return None if directory is None else ChaosFaults(directory)
    except OSError as error:
        raise Failed(f"--chaos {directory}: no chaos run has begun there: {error}") from error
