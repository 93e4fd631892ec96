"""The cluster that a verb asks: its servers, and how the verb speaks to them."""

from pathlib import Path
from types import SimpleNamespace

from jepsen_like.installation import command
from jepsen_like.real.client_settings import PLAIN, ClientSettings
from jepsen_like.real.kafka_client import Client, refusal
from jepsen_like.real.layout import ClusterError
from quorumlab.arguments import UsageError
from quorumlab.client_properties import given_settings, load_client_settings
from quorumlab.verbs.common import DEFAULT_DIRECTORY, addresses
from quorumlab.verbs.nodes import open_cluster
from wire.errors import ErrorCode

__all__ = ["bootstrap_servers", "check", "client_settings", "connected"]

CLIENT_PROPERTIES = "client.properties"  # of a cluster in a directory, if it is secured


def connected(args: SimpleNamespace) -> Client:
    return Client(bootstrap_servers(args), settings=client_settings(args))


def client_settings(args: SimpleNamespace) -> ClientSettings:
    """Those of --command-config, or those that the cluster's directory has."""
    if args.command_config is not None or args.bootstrap_server:
        return given_settings(args.command_config)
    own = (args.dir or Path(DEFAULT_DIRECTORY)) / CLIENT_PROPERTIES
    return load_client_settings(own) if own.exists() else PLAIN


def bootstrap_servers(args: SimpleNamespace) -> list[tuple[str, int]]:
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


def check(code: ErrorCode, message: str | None) -> None:
    """Raises ClusterError for what a node refused."""
    if code != ErrorCode.NONE:
        raise ClusterError(refusal(code, message))
