"""The cluster that `up` is asked for: a new one, or the one that the directory holds.

An impossible cluster is refused before anything is written: a directory with a cluster that can
never start is nothing to leave behind.
"""

import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import SimpleNamespace

from jepsen_like.real.layout import CLUSTER_FILE
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.shape import Shape, why_no_engine
from jepsen_like.real.zookeeper import missing_reason
from quorum.raftos.engines import NATIVE
from quorumlab.arguments import UsageError
from quorumlab.config import ConfigError, node_config, parse_properties
from quorumlab.mode_config import WITHOUT
from quorumlab.output import refuse_other_directory, say
from quorumlab.verbs.common import in_bounds, one_of, pairs
from quorumlab.verbs.format import released
from wire.zk.designs import DESIGNS
from wire.zk.switches import names_in, without

__all__ = ["cluster_asked_for", "refuse_what_cannot_be"]

_QUORUM = "quorum"
_DESIGNS = (_QUORUM, *DESIGNS)
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
    "quorumlab.http.nodes",
    "quorumlab.raftos.voters",
    "zookeeper.connect",
)


def refuse_what_cannot_be(args: SimpleNamespace, directory: Path) -> None:
    """Raises UsageError or ClusterError; warns of what is not advisable. Writes nothing."""
    is_there = (directory / CLUSTER_FILE).exists()
    cluster = LocalCluster.open(directory) if is_there else None
    design = args.design or (_QUORUM if cluster is None else cluster.layout.design)
    _refuse_what_is_not_there(args, design)
    if cluster is None or cluster.layout.zookeepers:
        _refuse_without_zookeeper(args, design)
    settings = _settings(args)
    if cluster is not None:
        _refuse_changes(cluster, args.port, settings)
        return
    if not (directory / "up.lock").exists():  # what an `up` has left that was killed is its own
        left = ("cluster.tmp",)  # of one whose disk was full
        refuse_other_directory(directory, option="--dir", holds=CLUSTER_FILE, but=left)
    _check(settings, design, args.security or "")
    controllers = args.controllers
    if controllers is not None and controllers % 2 == 0:
        say(
            f"warning: {controllers} controllers tolerate no more failures than {controllers - 1}, "
            f"for their majority is larger: take {controllers - 1} or {controllers + 1}",
            sys.stderr,
        )


def cluster_asked_for(args: SimpleNamespace, directory: Path) -> LocalCluster:
    """Laid out in its directory, not started."""
    return LocalCluster.create(
        directory,
        controllers=args.controllers,
        brokers=args.brokers,
        combined=args.combined,
        first_voters=(args.controllers or 3) if args.dynamic else 0,
        first_port=args.port or 0,
        settings=_settings(args),
        design=args.design,
        engine=args.engine,
        zookeepers=args.zookeepers,
        zookeeper_connect=args.zookeeper_connect or "",
        release_version=args.release_version or "",
        security=args.security or "",
    )


def _refuse_what_is_not_there(args: SimpleNamespace, design: str) -> None:
    one_of(_DESIGNS, "--design", design)
    why = why_no_engine(
        args.engine or NATIVE,
        design=design,
        controllers=args.controllers or 3,
        dynamic=args.dynamic,
    )
    if why is not None:
        raise UsageError(f"--engine {args.engine}: {why}")
    _refuse_what_the_design_has_not(args, design)
    if args.security and (args.engine or NATIVE) != NATIVE:
        raise UsageError(f"--security: {args.engine} speaks in the clear: leave --engine out")
    in_bounds(args, controllers=(1, 99), brokers=(1, 99), port=(1, _FIRST_PORT_MAX))


def _refuse_what_the_design_has_not(args: SimpleNamespace, design: str) -> None:
    count, connect = args.zookeepers, args.zookeeper_connect
    of_zookeeper = {"zookeepers": count, "zookeeper-connect": connect, "without": args.without}
    if args.security and design != _QUORUM:
        raise UsageError(f"--security: {design} has none: leave it out, or take --design quorum")
    released(args.release_version)
    if design == _QUORUM:
        for option, value in of_zookeeper.items():
            if value is not None:
                raise UsageError(
                    f"--{option}: the quorum design has no ZooKeeper: choose a zk --design"
                )
        return
    try:
        without(DESIGNS[design], args.without or "")
    except ValueError as error:
        raise UsageError(f"--without {args.without}: {error}") from error
    if args.release_version is not None:
        raise UsageError(f"--release-version: {design} has no features of a metadata log")
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


def _refuse_without_zookeeper(args: SimpleNamespace, design: str) -> None:
    """Only a ZooKeeper of the cluster's own needs what starts it."""
    if design == _QUORUM or args.zookeeper_connect is not None:
        return
    missing = missing_reason()
    if missing is not None:
        raise UsageError(f"--design {design}: {missing}")


def _settings(args: SimpleNamespace) -> dict[str, str]:
    """Those of --set, and what --without stands for."""
    settings = dict(pairs("--set", args.set))
    for key in _OF_EACH_NODE:
        if key in settings:
            text = f"--set {key}={settings[key]}"
            raise UsageError(f"{text}: each node has its own {key}, and `up` writes it")
    if args.without is not None:
        settings[WITHOUT] = ",".join(names_in(args.without))
    return settings


def _check(settings: Mapping[str, str], design: str, security: str) -> None:
    """Checks the settings as a node of the design would; in a quorum, as one of both roles."""
    shape = (
        Shape(controllers=1, brokers=1, combined=True, security=security)
        if design == _QUORUM
        else Shape(brokers=1, design=design, zookeeper_connect="h:1")
    )
    layout = shape.lay_out(Path("/"), count(1))
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
