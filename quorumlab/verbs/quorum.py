"""`quorumlab quorum`: the metadata quorum, in the layout of kafka-metadata-quorum."""

import argparse
import json
import time
from typing import Any

from jepsen_like.real.kafka_client import Client, refusal
from jepsen_like.real.layout import ClusterError
from quorumlab.arguments import UsageError
from quorumlab.output import aligned, print_json, say
from quorumlab.verbs import quorum_voters
from quorumlab.verbs.common import (
    add_cluster_options,
    add_format_option,
    addresses,
    bootstrap_servers,
)
from wire.errors import ErrorCode
from wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from wire.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumPartitionResult,
    QuorumReplica,
    QuorumTopic,
)
from wire.primitives import METADATA_TOPIC, ZERO_UUID, uuid_text

__all__ = ["add_options"]

_LABEL_WIDTH = 24  # Kafka's tool pads its labels to this column
_BROKERS, _CONTROLLERS = 1, 2  # whom DescribeCluster is to name (KIP-919)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "The metadata quorum, with the options and the layout of kafka-metadata-quorum."
    )
    parser.epilog = "`quorumlab quorum VERB --help` lists the options of a verb."
    actions = parser.add_subparsers(required=True, metavar="VERB")
    describe = actions.add_parser(
        "describe",
        help="leader, epoch, high watermark, replicas",
        description="Who leads the quorum, who votes, and how far each replica is: give --status "
        "or --replication.",
    )
    _add_options(describe)
    add_format_option(describe)
    describe.add_argument("--status", action="store_true", help="a summary of the quorum")
    describe.add_argument("--replication", action="store_true", help="every replica and its lag")
    describe.add_argument(
        "--human-readable", action="store_true", help="times as seconds ago (with --replication)"
    )
    describe.set_defaults(run=_describe)
    quorum_voters.add_parsers(actions, _add_options, _open_client, _partition)


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_cluster_options(parser)
    parser.add_argument(
        "--bootstrap-controller", metavar="HOST:PORT,…", help="controllers to ask, not brokers"
    )


def _open_client(args: argparse.Namespace) -> Client:
    """To a broker, which finds the leader by itself, or to the leader."""
    if not args.bootstrap_controller:
        return Client(bootstrap_servers(args))
    if args.bootstrap_server or args.dir:
        raise UsageError("--bootstrap-controller: give it alone")
    servers = addresses(args.bootstrap_controller, "--bootstrap-controller")
    with Client(servers) as client:
        known = client.ask(
            DescribeClusterRequest(
                include_cluster_authorized_operations=False, endpoint_type=_CONTROLLERS
            ),
            DescribeClusterResponse,
        )
    if known.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
        raise ClusterError(
            f"{args.bootstrap_controller} is a broker's: give it as --bootstrap-server"
        )
    if known.error_code != ErrorCode.NONE:
        raise ClusterError(refusal(known.error_code, known.error_message))
    for node in known.brokers:
        if node.broker_id == known.controller_id:
            return Client([(node.host, node.port)])
    raise ClusterError("no controller leads the quorum at the moment")


def _describe(args: argparse.Namespace) -> int:
    if args.status == args.replication:
        raise UsageError("quorum describe: give --status or --replication")
    with _open_client(args) as client:
        answer = _ask(client)
        partition = answer.topics[0].partitions[0]
        cluster_id = client.ask(
            DescribeClusterRequest(
                include_cluster_authorized_operations=False,
                endpoint_type=_CONTROLLERS if args.bootstrap_controller else _BROKERS,
            ),
            DescribeClusterResponse,
        ).cluster_id
    if args.status:
        _print_status(_status(answer, partition, cluster_id), args.format)
    else:
        _print_replication(_replication(partition), args)
    return 0


def _partition(client: Client) -> QuorumPartitionResult:
    return _ask(client).topics[0].partitions[0]


def _ask(client: Client) -> DescribeQuorumResponse:
    partition = QuorumPartition(partition_index=0)
    topic = QuorumTopic(topic_name=METADATA_TOPIC, partitions=(partition,))
    answer = client.ask(DescribeQuorumRequest(topics=(topic,)), DescribeQuorumResponse)
    for code, message in [(answer.error_code, answer.error_message)] + [
        (partition.error_code, partition.error_message)
        for topic in answer.topics
        for partition in topic.partitions
    ]:
        if code != ErrorCode.NONE:
            raise ClusterError(refusal(code, message))
    return answer


def _status(
    answer: DescribeQuorumResponse, partition: QuorumPartitionResult, cluster_id: str
) -> dict[str, Any]:
    leader = _leader(partition)
    followers = [v for v in partition.current_voters if v is not leader and v.log_end_offset >= 0]
    slowest = min((v.last_caught_up_timestamp for v in followers), default=-1)
    now_ms = leader.last_caught_up_timestamp
    endpoints = {
        node.node_id: [f"{item.name}://{item.host}:{item.port}" for item in node.listeners]
        for node in answer.nodes
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
    """One that is being removed is an observer already."""
    return next(
        replica
        for replica in (*partition.current_voters, *partition.observers)
        if replica.replica_id == partition.leader_id
    )


def _identity(replica: QuorumReplica) -> dict[str, Any]:
    """Without the directory id, where it is not known."""
    if replica.replica_directory_id == ZERO_UUID:
        return {"id": replica.replica_id}
    return {"id": replica.replica_id, "directoryId": uuid_text(replica.replica_directory_id)}


def _print_status(status: dict[str, Any], form: str) -> None:
    if form != "table":
        print_json(status, form=form)
        return
    for label, value in status.items():
        text = json.dumps(value, separators=(", ", ": ")) if isinstance(value, list) else value
        say(f"{label + ':':<{_LABEL_WIDTH}}{text}")


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


def _print_replication(rows: list[dict[str, Any]], args: argparse.Namespace) -> None:
    if args.format != "table":
        print_json(rows, form=args.format)
        return
    now_ms = int(time.time() * 1000)
    if args.human_readable:
        for row in rows:
            for key in ("LastFetchTimestamp", "LastCaughtUpTimestamp"):
                row[key] = f"{max(now_ms - row[key], 0)} ms ago" if row[key] >= 0 else "unknown"
    lines = [list(rows[0])] + [[str(value) for value in row.values()] for row in rows]
    for line in aligned(lines, "\t"):
        say(line)
