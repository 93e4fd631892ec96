"""`quorumlab quorum add-controller` and `remove-controller`: who votes in the metadata quorum.

What is said of a new voter is read where the node itself reads it: in its server.properties and its
formatted directory. So the command runs where these are, as Kafka's does.

Source: KIP-853; Kafka's MetadataQuorumCommand.
"""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from jepsen_like.real.kafka_client import Client, refusal
from jepsen_like.real.layout import ClusterError
from quorum.log.files.checkpoints import META_PROPERTIES, parse_meta_properties
from quorumlab.arguments import UsageError
from quorumlab.config import ConfigError, NodeConfig, load
from quorumlab.output import print_json, say
from quorumlab.verbs.common import add_format_option
from wire.errors import ErrorCode
from wire.messages.endpoints import Listener
from wire.messages.voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    QuorumPartitionResult,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from wire.primitives import ZERO_UUID, parse_uuid, uuid_text

__all__ = ["add_parsers"]

_TIMEOUT_MS = 10_000
_TRY_AGAIN = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER)

OpenClient = Callable[[argparse.Namespace], Client]
Describe = Callable[[Client], QuorumPartitionResult]


def add_parsers(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]",
    add_options: Callable[[argparse.ArgumentParser], None],
    open_client: OpenClient,
    describe: Describe,
) -> None:
    add = actions.add_parser(
        "add-controller",
        aliases=["add-voter"],
        help="make a controller that follows the quorum one of its voters",
        description="Make a controller that runs and follows the quorum one of its voters. Its "
        "id, directory id and endpoints come from its server.properties and log directory: run "
        "this on its machine.",
    )
    add.add_argument(
        "--config", type=Path, required=True, metavar="FILE", help="its server.properties"
    )
    add.set_defaults(run=lambda args: _add(args, open_client))
    remove = actions.add_parser(
        "remove-controller",
        aliases=["remove-voter"],
        help="let a controller vote no longer",
        description="Let a controller vote no longer. It goes on following the quorum until it is "
        "stopped.",
    )
    remove.add_argument("--controller-id", type=int, required=True, metavar="ID")
    remove.add_argument(
        "--controller-directory-id", metavar="DIRECTORY-ID", help="default: that of the voter"
    )
    remove.set_defaults(run=lambda args: _remove(args, open_client, describe))
    for parser in (add, remove):
        parser.add_argument("--dry-run", action="store_true", help="say what would be done")
        add_options(parser)
        add_format_option(parser)


# --- adding ----------------------------------------------------------------------------------


def _add(args: argparse.Namespace, open_client: OpenClient) -> int:
    config = load(args.config, os.environ)
    if not config.is_controller:
        raise UsageError(f"node {config.node_id} of {args.config} is no controller")
    directory_id = _directory_id(config)
    listeners = tuple(
        Listener(name=each.name, host=each.host, port=each.port)
        for each in config.advertised_controllers
    )
    where = ", ".join(f"{each.name}://{each.host}:{each.port}" for each in listeners)
    done = (
        f"controller {config.node_id} with directory id {uuid_text(directory_id)}"
        f" and endpoints: {where}"
    )
    if args.dry_run:
        return _tell(args, f"DRY RUN of adding {done}", config.node_id, directory_id)
    request = AddRaftVoterRequest(
        timeout_ms=_TIMEOUT_MS,
        voter_id=config.node_id,
        voter_directory_id=directory_id,
        listeners=listeners,
    )
    with open_client(args) as client:
        answer = client.ask(request, AddRaftVoterResponse)
    _check(answer.error_code, answer.error_message)
    return _tell(args, f"Added {done}", config.node_id, directory_id)


def _directory_id(config: NodeConfig) -> UUID:
    path = config.metadata_dir / META_PROPERTIES
    try:
        directory_id = parse_meta_properties(path.read_bytes(), str(path)).directory_id
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}; format and start the node first, and run this "
            "where its directory is"
        ) from error
    if directory_id is None:
        raise ConfigError(f"{path} has no directory.id: start the node once")
    return directory_id


# --- removing --------------------------------------------------------------------------------


def _remove(args: argparse.Namespace, open_client: OpenClient, describe: Describe) -> int:
    node_id = args.controller_id
    with open_client(args) as client:
        directory_id = _given(args.controller_directory_id)
        if directory_id is None:
            directory_id = _voters_directory(describe(client), node_id)
        done = f"KRaft controller {node_id} with directory id {uuid_text(directory_id)}"
        if args.dry_run:
            return _tell(args, f"DRY RUN of removing {done}", node_id, directory_id)
        request = RemoveRaftVoterRequest(voter_id=node_id, voter_directory_id=directory_id)
        answer = client.ask(request, RemoveRaftVoterResponse)
    _check(answer.error_code, answer.error_message)
    return _tell(args, f"Removed {done}", node_id, directory_id)


def _given(text: str | None) -> UUID | None:
    try:
        return None if text is None else parse_uuid(text)
    except ValueError as error:
        raise UsageError(f"--controller-directory-id {text}: {error}") from error


def _voters_directory(partition: QuorumPartitionResult, node_id: int) -> UUID:
    for voter in partition.current_voters:
        if voter.replica_id == node_id:
            if voter.replica_directory_id == ZERO_UUID:
                break
            return voter.replica_directory_id
    known = ", ".join(str(voter.replica_id) for voter in partition.current_voters)
    raise ClusterError(f"node {node_id} is no voter with a directory id; the voters are {known}")


# --- both ------------------------------------------------------------------------------------


def _check(error: ErrorCode, message: str | None) -> None:
    if error is ErrorCode.NONE:
        return
    hint = ". Look at `quorumlab quorum describe --replication`, and try again" * (
        error in _TRY_AGAIN
    )
    raise ClusterError(refusal(error, message) + hint)


def _tell(args: argparse.Namespace, text: str, node_id: int, directory_id: UUID) -> int:
    if args.format == "table":
        say(text)
        return 0
    told: dict[str, Any] = {
        "controller_id": node_id,
        "directory_id": uuid_text(directory_id),
        "dry_run": args.dry_run,
    }
    print_json(told, form=args.format)
    return 0
