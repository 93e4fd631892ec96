"""`quorumlab format`: prepare the data directories of a node, once in its life.

The configuration names static controllers, and nothing else is needed. Where voters live in the
log, the first ones are named here, in Kafka's three ways.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from random import SystemRandom
from types import SimpleNamespace

from controller.metadata.metadata_version import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION
from quorum.core.storage import StorageError
from quorum.node.bootstrap import format_first_voters
from quorum.node.directories import (
    check_owner,
    format_directory,
    is_formatted,
    read_meta_properties,
)
from quorum.raft.voters import VoterSet
from quorumlab.arguments import UsageError
from quorumlab.config import NodeConfig, load
from quorumlab.first_records import (
    DEFAULT_RECORDS,
    FirstRecords,
    initial_controllers,
    of_release,
    standalone,
    why_not_to_begin,
    with_levels,
)
from quorumlab.output import answer
from quorumlab.security.first_credentials import first_credential
from wire.metadata_records import encode_record
from wire.primitives import parse_uuid, random_uuid, uuid_text

__all__ = ["first_voters", "format_node", "released", "run"]

NOBODY = VoterSet()  # others know the voters: the configuration, or the log


def run(args: SimpleNamespace) -> int:
    config = load(args.config, os.environ)
    voters = _beginning(args, config)
    cluster_id = _cluster_id(args.cluster_id, config)
    if cluster_id is None:
        _refuse_new_id_to_join(args, config)
        cluster_id = uuid_text(random_uuid(SystemRandom()))
    formatted = format_node(
        config,
        cluster_id,
        ignore_formatted=args.ignore_formatted,
        voters=voters,
        first=_first_records(args.release_version, args.feature, args.add_scram),
    )
    whose = f"for node {config.node_id} of cluster {cluster_id}"
    lines = [f"Formatted {path} {whose}" for path in formatted]
    if formatted and voters:
        lines.append(f"The first voters are {', '.join(map(str, voters.ids))}")
    if not formatted:
        lines.append("All of the log directories are already formatted.")
    answer(args.format, {"cluster_id": cluster_id, "directories": formatted}, lines)
    return 0


def _cluster_id(given: str | None, config: NodeConfig) -> str | None:
    """Returns what is given, or the id of the directories that are formatted already."""
    try:
        if given is not None:
            parse_uuid(given)
    except ValueError as error:
        raise UsageError(f"--cluster-id {given}: {error}") from error
    cluster_id = given
    for path in _directories(config):
        meta = read_meta_properties(path)
        if meta is not None:
            check_owner(path, meta, node_id=config.node_id, cluster_id=cluster_id)
            cluster_id = meta.cluster_id
    return cluster_id


def _refuse_new_id_to_join(args: SimpleNamespace, config: NodeConfig) -> None:
    """The others would refuse a node with a new cluster id when it starts. Raises UsageError."""
    if args.no_initial_controllers:
        joins = "--no-initial-controllers"
    elif config.design is None and not config.is_controller:
        joins = f"node {config.node_id} is no controller"
    else:
        return
    raise UsageError(
        f"{joins}: it joins a cluster, so give the id of that by --cluster-id; "
        "cluster.id in meta.properties of the first controller has it"
    )


def released(name: str | None) -> FirstRecords:
    """The first records that --release-version means."""
    if name is None:
        return DEFAULT_RECORDS
    try:
        return of_release(name)
    except ValueError as error:
        raise UsageError(f"--release-version: {error}") from error


def _first_records(release: str | None, asked: Sequence[str], users: Sequence[str]) -> FirstRecords:
    levels: dict[str, int] = {}
    if release is not None:
        levels[METADATA_VERSION] = released(release).levels[METADATA_VERSION]
    for each in asked:
        name, _, level = each.partition("=")
        if not level.isdecimal():
            raise UsageError(f"--feature {each}: say NAME=LEVEL, such as {ELR_VERSION}=0")
        if release is not None and name == METADATA_VERSION:
            raise UsageError(f"--feature {each}: --release-version says it already")
        levels[name] = int(level)
    if KRAFT_VERSION in levels:
        raise UsageError(f"--feature {KRAFT_VERSION}: it is 1 where the voters live in the log")
    try:
        first = with_levels(levels)
    except ValueError as error:
        raise UsageError(f"--feature: {error}") from error
    try:
        return replace(first, others=tuple(map(first_credential, users)))
    except ValueError as error:
        raise UsageError(f"--add-scram: {error}") from error


def _directories(config: NodeConfig) -> list[str]:
    return sorted({str(path) for path in (*config.log_dirs, config.metadata_dir)})


def _beginning(args: SimpleNamespace, config: NodeConfig) -> VoterSet:
    """The first voters, empty where others know them. Refuses what leaves no way to begin."""
    is_told = args.standalone or args.initial_controllers or args.no_initial_controllers
    if is_told and config.voters:
        raise UsageError(
            "controller.quorum.voters names static voters: leave it out, and name some of them as "
            "controller.quorum.bootstrap.servers, or format without this option"
        )
    if config.is_controller and not config.voters and not is_told:
        raise UsageError(
            "controller.quorum.voters is not set: say how this controller begins, with "
            "--standalone, --initial-controllers or --no-initial-controllers"
        )
    if args.standalone:
        if not config.is_controller:
            raise UsageError(f"--standalone: node {config.node_id} is no controller")
        return standalone(config, random_uuid(SystemRandom()))
    return first_voters(args.initial_controllers, config)


def first_voters(text: str | None, config: NodeConfig) -> VoterSet:
    """Parses --initial-controllers; empty if it is not given."""
    return initial_controllers(text, config) if text else NOBODY


def format_node(
    config: NodeConfig,
    cluster_id: str,
    *,
    ignore_formatted: bool,
    voters: VoterSet = NOBODY,
    first: FirstRecords = DEFAULT_RECORDS,
) -> list[str]:
    """Format every data directory that is not. Returns those that were.

    First voters are left to a node that is one of them; its metadata directory has the id that they
    say.
    """
    wrong = why_not_to_begin(first, voters)
    if wrong:
        raise UsageError(wrong)
    paths = _directories(config)
    done = [path for path in paths if is_formatted(path)]
    if done and not ignore_formatted:
        raise StorageError(
            f"{done[0]} is formatted already: use --ignore-formatted to leave it as it is, "
            "or empty it by hand if its data may go"
        )
    own = voters.get(config.node_id)
    fresh = [path for path in paths if path not in done]
    now_ms = time.time_ns() // 1_000_000
    for path in fresh:
        is_voters = own is not None and path == str(config.metadata_dir)
        format_directory(
            path,
            cluster_id=cluster_id,
            node_id=config.node_id,
            directory_id=own.key.directory_id if own is not None and is_voters else None,
            bootstrap=tuple(map(encode_record, first.records())),
            first_voters=format_first_voters(voters, timestamp_ms=now_ms) if is_voters else b"",
        )
    return fresh
