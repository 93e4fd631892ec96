"""`quorumlab quorum`: the metadata quorum and its voters, as kafka-metadata-quorum has them.

`add-controller` reads what it says of a new voter where the node itself reads it: in its
server.properties and its formatted directory. So it runs where these are, as Kafka's does.

Source: KIP-853; Kafka's MetadataQuorumCommand.
"""

import json
import os
import re
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from jepsen_like.real.kafka_client import Client, refusal
from jepsen_like.real.layout import ClusterError
from quorum.log.files.checkpoints import META_PROPERTIES, parse_meta_properties
from quorumlab.arguments import UsageError
from quorumlab.config import ConfigError, NodeConfig, load
from quorumlab.folding import columns, fits
from quorumlab.output import aligned, answer, table_lines
from quorumlab.verbs.common import addresses
from quorumlab.verbs.connecting import check, client_settings, connected
from wire.errors import ErrorCode
from wire.messages.endpoints import Listener
from wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from wire.messages.voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumPartitionResult,
    QuorumReplica,
    QuorumTopic,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from wire.primitives import METADATA_TOPIC, ZERO_UUID, parse_uuid, uuid_text

__all__ = ["add_controller", "describe", "remove_controller"]

_HUMP = re.compile("(?<=[a-z])(?=[A-Z])")
_LABEL_WIDTH = 24  # Kafka's tool pads its labels to this column
_BROKERS, _CONTROLLERS = 1, 2  # whom DescribeCluster is to name (KIP-919)
_TIMEOUT_MS = 10_000
_TRY_AGAIN = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _open_client(args: SimpleNamespace) -> Client:
    """Connects to a broker, which finds the leader by itself, or to the leader."""
    if not args.bootstrap_controller:
        return connected(args)
    if args.bootstrap_server or args.dir:
        raise UsageError("--bootstrap-controller: give it alone")
    servers = addresses(args.bootstrap_controller, "--bootstrap-controller")
    settings = client_settings(args)
    with Client(servers, settings=settings) as client:
        known = client.ask(
            DescribeClusterRequest(endpoint_type=_CONTROLLERS), DescribeClusterResponse
        )
    if known.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
        raise ClusterError(
            f"{args.bootstrap_controller} is a broker's: give it as --bootstrap-server"
        )
    check(known.error_code, known.error_message)
    for node in known.brokers:
        if node.broker_id == known.controller_id:
            return Client([(node.host, node.port)], settings=settings)
    raise ClusterError("no controller leads the quorum at the moment")


# --- describing -------------------------------------------------------------------------------


def describe(args: SimpleNamespace) -> int:
    if args.status == args.replication:
        raise UsageError("quorum describe: give --status or --replication")
    kind = _CONTROLLERS if args.bootstrap_controller else _BROKERS
    with _open_client(args) as client:
        described = _ask(client)
        cluster = client.ask(DescribeClusterRequest(endpoint_type=kind), DescribeClusterResponse)
    if args.status:
        status = _status(described, cluster.cluster_id)
        answer(args.format, status, _status_lines(status), indent=_LABEL_WIDTH + 1)
    else:
        rows = _replication(described.topics[0].partitions[0])
        answer(args.format, rows, _replication_lines(rows, args))
    return 0


def _ask(client: Client) -> DescribeQuorumResponse:
    asked = (QuorumPartition(partition_index=0),)
    topics = (QuorumTopic(topic_name=METADATA_TOPIC, partitions=asked),)
    described = client.ask(DescribeQuorumRequest(topics=topics), DescribeQuorumResponse)
    check(described.error_code, described.error_message)
    for topic in described.topics:
        for partition in topic.partitions:
            check(partition.error_code, partition.error_message)
    return described


def _status(described: DescribeQuorumResponse, cluster_id: str) -> dict[str, Any]:
    partition = described.topics[0].partitions[0]
    leader = _leader(partition)
    followers = [v for v in partition.current_voters if v is not leader and v.log_end_offset >= 0]
    slowest = min((v.last_caught_up_timestamp for v in followers), default=-1)
    now_ms = leader.last_caught_up_timestamp
    endpoints = {
        node.node_id: [f"{item.name}://{item.host}:{item.port}" for item in node.listeners]
        for node in described.nodes
    }
    return {
        "ClusterId": cluster_id,
        "LeaderId": partition.leader_id,
        "LeaderEpoch": partition.leader_epoch,
        "HighWatermark": partition.high_watermark,
        "MaxFollowerLag": max(
            (leader.log_end_offset - v.log_end_offset for v in followers), default=0
        ),
        "MaxFollowerLagTimeMs": max(now_ms - slowest, 0) if slowest >= 0 else 0,
        "CurrentVoters": [
            {**_identity(voter), "endpoints": endpoints.get(voter.replica_id, [])}
            for voter in partition.current_voters
        ],
        "CurrentObservers": [_identity(observer) for observer in partition.observers],
    }


def _leader(partition: QuorumPartitionResult) -> QuorumReplica:
    """A leader that is being removed is an observer already."""
    return next(
        replica
        for replica in (*partition.current_voters, *partition.observers)
        if replica.replica_id == partition.leader_id
    )


def _identity(replica: QuorumReplica) -> dict[str, Any]:
    """Leaves out a directory id that is not known."""
    directory_id = replica.replica_directory_id
    known = {} if directory_id == ZERO_UUID else {"directoryId": uuid_text(directory_id)}
    return {"id": replica.replica_id, **known}


def _status_lines(status: dict[str, Any]) -> Iterator[str]:
    for label, value in status.items():
        if isinstance(value, list) and columns():
            yield from _listed(label, value)
            continue
        text = json.dumps(value, separators=(", ", ": ")) if isinstance(value, list) else value
        yield f"{label + ':':<{_LABEL_WIDTH}}{text}"


def _listed(label: str, values: list[dict[str, Any]]) -> Iterator[str]:
    """As JSON too, but one a line."""
    texts = [json.dumps(value, separators=(", ", ": ")) for value in values]
    told = ",\n ".join(texts)
    for number, line in enumerate(f"[{told}]".split("\n")):
        yield f"{'' if number else label + ':':<{_LABEL_WIDTH}}{line}"


def _replication(partition: QuorumPartitionResult) -> list[dict[str, Any]]:
    end = _leader(partition).log_end_offset
    groups = (("Follower", partition.current_voters), ("Observer", partition.observers))
    rows = [
        {
            "NodeId": replica.replica_id,
            "DirectoryId": uuid_text(replica.replica_directory_id),
            "LogEndOffset": replica.log_end_offset,
            "Lag": end - replica.log_end_offset,
            "LastFetchTimestamp": replica.last_fetch_timestamp,
            "LastCaughtUpTimestamp": replica.last_caught_up_timestamp,
            "Status": "Leader" if replica.replica_id == partition.leader_id else status,
        }
        for status, replicas in groups
        for replica in replicas
    ]
    return sorted(rows, key=lambda row: ("Leader", "Follower", "Observer").index(row["Status"]))


def _replication_lines(rows: list[dict[str, Any]], args: SimpleNamespace) -> Iterator[str]:
    now_ms = int(time.time() * 1000)
    if args.human_readable:
        for row in rows:
            for key in ("LastFetchTimestamp", "LastCaughtUpTimestamp"):
                row[key] = f"{max(now_ms - row[key], 0)} ms ago" if row[key] >= 0 else "unknown"
    lines = [list(rows[0])] + [[str(value) for value in row.values()] for row in rows]
    kafkas = list(aligned(lines, "\t"))
    return iter(kafkas) if fits(kafkas) else table_lines(*_with_spaced_names(rows))


def _with_spaced_names(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """And these names: `LOG END OFFSET` can be in three lines, `LogEndOffset` cannot."""
    spaced = {name: _HUMP.sub(" ", name).upper() for name in rows[0]}
    named = [{spaced[name]: value for name, value in row.items()} for row in rows]
    return named, list(spaced.values())


# --- voters -----------------------------------------------------------------------------------


def add_controller(args: SimpleNamespace) -> int:
    config = load(args.config, os.environ)
    if not config.is_controller:
        raise UsageError(f"node {config.node_id} of {args.config} is no controller")
    directory_id = _formatted_id(config)
    listeners = tuple(
        Listener(name=each.name, host=each.host, port=each.port)
        for each in config.advertised_controllers
    )
    where = ", ".join(f"{each.name}://{each.host}:{each.port}" for each in listeners)
    done = (
        f"controller {config.node_id} with directory id {uuid_text(directory_id)}"
        f" and endpoints: {where}"
    )
    if not args.dry_run:
        request = AddRaftVoterRequest(
            timeout_ms=_TIMEOUT_MS,
            voter_id=config.node_id,
            voter_directory_id=directory_id,
            listeners=listeners,
        )
        with _open_client(args) as client:
            _check_change(client.ask(request, AddRaftVoterResponse))
    did = "DRY RUN of adding" if args.dry_run else "Added"
    _tell(args, f"{did} {done}", config.node_id, directory_id)
    return 0


def _formatted_id(config: NodeConfig) -> UUID:
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


def remove_controller(args: SimpleNamespace) -> int:
    node_id, given = args.controller_id, args.controller_directory_id
    with _open_client(args) as client:
        try:
            directory_id = None if given is None else parse_uuid(given)
        except ValueError as error:
            raise UsageError(f"--controller-directory-id {given}: {error}") from error
        if directory_id is None:
            directory_id = _voters_directory(_ask(client).topics[0].partitions[0], node_id)
        if not args.dry_run:
            request = RemoveRaftVoterRequest(voter_id=node_id, voter_directory_id=directory_id)
            _check_change(client.ask(request, RemoveRaftVoterResponse))
    done = f"KRaft controller {node_id} with directory id {uuid_text(directory_id)}"
    did = "DRY RUN of removing" if args.dry_run else "Removed"
    _tell(args, f"{did} {done}", node_id, directory_id)
    return 0


def _voters_directory(partition: QuorumPartitionResult, node_id: int) -> UUID:
    for voter in partition.current_voters:
        if voter.replica_id == node_id and voter.replica_directory_id != ZERO_UUID:
            return voter.replica_directory_id
    known = ", ".join(str(voter.replica_id) for voter in partition.current_voters)
    raise ClusterError(f"node {node_id} is no voter with a directory id; the voters are {known}")


def _check_change(told: AddRaftVoterResponse | RemoveRaftVoterResponse) -> None:
    if told.error_code in _TRY_AGAIN:
        hint = ". Look at `quorumlab quorum describe --replication`, and try again"
        raise ClusterError(refusal(told.error_code, told.error_message) + hint)
    check(told.error_code, told.error_message)


def _tell(args: SimpleNamespace, text: str, node_id: int, directory_id: UUID) -> None:
    told = {
        "controller_id": node_id,
        "directory_id": uuid_text(directory_id),
        "dry_run": args.dry_run,
    }
    answer(args.format, told, [text])
