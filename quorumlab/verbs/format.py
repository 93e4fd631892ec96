"""`quorumlab format`: prepare the data directories of a node, once in its life."""

import argparse
import os
from pathlib import Path
from random import SystemRandom

from quorum.directories import format_directory, is_formatted
from quorum.storage import StorageError
from quorumlab.config import NodeConfig, load
from quorumlab.output import print_json, say
from quorumlab.verbs.common import UsageError, add_format_option
from wire.metadata_records import FeatureLevelRecord, encode_record
from wire.primitives import parse_uuid, random_uuid, uuid_text

__all__ = ["add_parser", "format_node"]

METADATA_VERSION = 25  # 4.0-IV3, which every Kafka 4 reads


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("format", help="prepare the data directories of a node")
    parser.add_argument(
        "--config", type=Path, required=True, metavar="FILE", help="the node's server.properties"
    )
    parser.add_argument("--cluster-id", metavar="ID", help="default: a new one, printed")
    parser.add_argument(
        "--ignore-formatted", action="store_true", help="leave formatted directories as they are"
    )
    for option in ("--standalone", "--no-initial-controllers"):
        parser.add_argument(option, action="store_true", help="as Kafka's option (not yet)")
    parser.add_argument(
        "--initial-controllers",
        metavar="ID@HOST:PORT:DIRECTORY-ID,…",
        help="as Kafka's option (not yet)",
    )
    add_format_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.standalone or args.initial_controllers or args.no_initial_controllers:
        raise UsageError(
            "voters that change at run time are not here yet: "
            "name the controllers in controller.quorum.voters and format without this option"
        )
    config = load(args.config, os.environ)
    cluster_id = args.cluster_id or uuid_text(random_uuid(SystemRandom()))
    try:
        parse_uuid(cluster_id)
    except ValueError as error:
        raise UsageError(f"--cluster-id {cluster_id}: {error}") from error
    formatted = format_node(config, cluster_id, ignore_formatted=args.ignore_formatted)
    if args.format != "table":
        print_json({"cluster_id": cluster_id, "directories": formatted}, form=args.format)
        return 0
    for path in formatted:
        say(f"Formatted {path} for node {config.node_id} of cluster {cluster_id}")
    if not formatted:
        say("All of the log directories are already formatted.")
    return 0


def format_node(config: NodeConfig, cluster_id: str, *, ignore_formatted: bool) -> list[str]:
    """Format every data directory that is not. Returns those that were."""
    paths = sorted({str(path) for path in (*config.log_dirs, config.metadata_dir)})
    done = [path for path in paths if is_formatted(path)]
    if done and not ignore_formatted:
        raise StorageError(
            f"{done[0]} is formatted already: use --ignore-formatted to leave it as it is, "
            "or empty it by hand if its data may go"
        )
    first = FeatureLevelRecord(name="metadata.version", feature_level=METADATA_VERSION)
    for path in paths:
        if path not in done:
            format_directory(
                path,
                cluster_id=cluster_id,
                node_id=config.node_id,
                bootstrap=(encode_record(first),),
            )
    return [path for path in paths if path not in done]
