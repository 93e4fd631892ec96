"""Options that several verbs share: the cluster, the format, and values that are refused."""

import argparse
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jepsen_like.installation import command
from jepsen_like.real.layout import ClusterError
from quorumlab.arguments import UsageError, did_you_mean
from wire.errors import ErrorCode

if TYPE_CHECKING:
    from jepsen_like.real.local_cluster import LocalCluster

__all__ = [
    "BROKERS",
    "DEFAULT_DIRECTORY",
    "DIRECTORY",
    "addresses",
    "bootstrap_servers",
    "check",
    "in_bounds",
    "one_of",
    "open_cluster",
    "pairs",
    "take_defaults",
]

DEFAULT_DIRECTORY = "data"
_PORTS = range(1, 65_536)


# Lines of tables of options: see `quorumlab.arguments.declare`.
BROKERS = "--bootstrap-server HOST:PORT,…  brokers to ask"
DIRECTORY = f"--dir D  the cluster's directory (default: ./{DEFAULT_DIRECTORY})"


def take_defaults(args: argparse.Namespace, defaults: Mapping[str, Any]) -> None:
    """Give options a default that the parser has not, so that it is known which ones were given."""
    for name, value in defaults.items():
        if getattr(args, name) is None:
            setattr(args, name, value)


def in_bounds(args: argparse.Namespace, **bounds: tuple[int, int]) -> None:
    """Raises UsageError for an option that is given and lies outside its bounds, both inclusive."""
    for name, (least, most) in bounds.items():
        value = getattr(args, name)
        if value is not None and not least <= value <= most:
            raise UsageError(f"--{name.replace('_', '-')} {value}: from {least} to {most}")


def one_of(known: Collection[str], option: str, value: str) -> None:
    """Raises UsageError, which names the nearest known value."""
    if value not in known:
        nearest = did_you_mean(value, known)
        raise UsageError(f"{option} {value}: {nearest}one of {', '.join(known)}")


def check(code: ErrorCode, message: str | None) -> None:
    """Raises ClusterError for what a node refused."""
    if code != ErrorCode.NONE:
        from jepsen_like.real.kafka_client import refusal  # has a client, which is slow to load

        raise ClusterError(refusal(code, message))


def open_cluster(args: argparse.Namespace) -> "LocalCluster":
    from jepsen_like.real.local_cluster import LocalCluster  # is slow to load

    return LocalCluster.open(args.dir or Path(DEFAULT_DIRECTORY))


def bootstrap_servers(args: argparse.Namespace) -> list[tuple[str, int]]:
    text = args.bootstrap_server
    if text and args.dir:
        raise UsageError("give --bootstrap-server or --dir, not both")
    if not text:
        try:
            cluster = open_cluster(args)
        except ClusterError as error:
            if args.dir is not None:
                raise
            raise ClusterError(f"{error}, or name one by --bootstrap-server or --dir") from error
        if not cluster.running():
            where = cluster.layout.directory
            raise ClusterError(
                f"the cluster in {where} does not run: `{command('up', '--dir', where)}` starts it"
            )
        text = cluster.layout.bootstrap_servers
    return addresses(text, "--bootstrap-server")


def pairs(option: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    """Each is KEY=VALUE. Raises UsageError."""
    found = []
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator:
            raise UsageError(f"{option} {text}: expected KEY=VALUE")
        found.append((key, value))
    return found


def addresses(text: str, option: str) -> list[tuple[str, int]]:
    """`host:port,…`, as an option has it."""
    servers = []
    for address in text.split(","):
        host, separator, port = address.strip().rpartition(":")
        if not separator or not port.isdecimal() or int(port) not in _PORTS:
            raise UsageError(f"{option}: {address!r} is not host:port")
        servers.append((host.strip("[]"), int(port)))
    return servers
