"""The facts that a diagnosis rests on: read from directories, asked of addresses."""

import socket
import time

from jepsen_like.real.layout import ClusterError
from quorumlab.client import Client
from quorumlab.inspection.diagnosis import LiveFacts, LiveVoter, ReplicaFacts
from quorumlab.inspection.identity import identify
from quorumlab.inspection.live import describe_quorum_of
from quorumlab.inspection.summary import summarize
from quorumlab.inspection.target import Address, Target
from wire.messages import describe_cluster, describe_quorum

__all__ = ["ask", "read"]

_CONNECT_SECONDS = 2.0


def read(name: str, target: Target) -> ReplicaFacts:
    known = identify(target)
    summary = summarize(target, known)
    ends = [snapshot.end_offset for snapshot in known.snapshots]
    return ReplicaFacts(
        name=name,
        cluster_id=known.cluster_id,
        node_id=known.node_id,
        directory_id=known.directory_id,
        last_epoch=summary.epochs[-1].epoch if summary.epochs else -1,
        end_offset=max([summary.end_offset, *ends]),
        voters=summary.voters.ids,
        voters_from=summary.voters.source,
        is_dynamic=summary.voters.is_dynamic,
        problems=tuple(summary.problems),
    )


def ask(address: Address) -> LiveFacts:
    """Never raises for a node that does not answer: that is a fact, too."""
    name = str(address)
    try:
        with Client([(address.host, address.port)], timeout_seconds=5.0) as client:
            cluster = client.ask(
                describe_cluster.DescribeClusterRequest(),
                describe_cluster.DescribeClusterResponse,
            )
        described = describe_quorum_of(address)
    except ClusterError as error:
        return LiveFacts(name=name, failure=str(error))
    now_ms = int(time.time() * 1000)
    return _facts(name, cluster.cluster_id, described, now_ms)


def _facts(
    name: str, cluster_id: str, described: describe_quorum.DescribeQuorumResponse, now_ms: int
) -> LiveFacts:
    partition = described.topics[0].partitions[0]
    endpoints = {
        node.node_id: f"{node.listeners[0].host}:{node.listeners[0].port}"
        for node in described.nodes
        if node.listeners
    }
    leaders_ms = now_ms
    for voter in partition.current_voters:
        if voter.replica_id == partition.leader_id and voter.last_caught_up_timestamp >= 0:
            leaders_ms = voter.last_caught_up_timestamp
    voters = tuple(
        LiveVoter(
            id=voter.replica_id,
            end_offset=voter.log_end_offset,
            behind_ms=(
                -1
                if voter.last_caught_up_timestamp < 0
                else max(0, leaders_ms - voter.last_caught_up_timestamp)
            ),
            endpoint=endpoints.get(voter.replica_id, ""),
        )
        for voter in partition.current_voters
    )
    reached = {voter.endpoint: _why_unreachable(voter.endpoint) for voter in voters}
    return LiveFacts(
        name=name,
        cluster_id=cluster_id,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=partition.high_watermark,
        voters=voters,
        clock_difference_ms=leaders_ms - now_ms,
        unreachable={endpoint: why for endpoint, why in reached.items() if endpoint and why},
    )


def _why_unreachable(endpoint: str) -> str | None:
    host, _, port = endpoint.rpartition(":")
    if not host:
        return None
    try:
        with socket.create_connection((host, int(port)), _CONNECT_SECONDS):
            return None
    except OSError as error:
        return str(error)
