"""The facts that a diagnosis rests on: read from directories, asked of addresses."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.facts import Holdings, LiveFacts, LiveVoter, ReplicaFacts
from quorumlab.inspection.identity import identify
from quorumlab.inspection.live import (
    NoQuorum,
    cluster_id_of,
    describe_quorum_of,
    has_dynamic_voters,
)
from quorumlab.inspection.opening import opened
from quorumlab.inspection.states import Moment, replay
from quorumlab.inspection.summary import summarize
from quorumlab.inspection.target import Address, Target
from wire.messages.voters import DescribeQuorumResponse, QuorumReplica
from wire.primitives import ZERO_UUID, uuid_text

__all__ = ["ask", "held_by", "read"]

_CONNECT_SECONDS = 2.0
_PROBES_AT_ONCE = 16


def read(name: str, target: Target) -> ReplicaFacts:
    known = identify(target)
    summary = summarize(target, known)
    ends = [(snapshot.epoch, snapshot.end_offset) for snapshot in known.snapshots]
    if target.segments and summary.batches:
        ends.append((summary.epochs[-1].epoch, summary.end_offset))
    last_epoch, end_offset = max(ends, default=(-1, 0))
    return ReplicaFacts(
        name=name,
        cluster_id=known.cluster_id,
        node_id=known.node_id,
        directory_id=known.directory_id,
        last_epoch=last_epoch,
        end_offset=end_offset,
        voters=summary.voters,
        problems=tuple(each for each in summary.problems if each != summary.torn_tail),
        torn_tail=summary.torn_tail,
    )


def ask(address: Address) -> LiveFacts:
    """Never raises for a node that does not answer: that is a fact, too."""
    name = str(address)
    cluster_id = None
    try:
        cluster_id = cluster_id_of(address)
        described = describe_quorum_of(address)
        is_dynamic = has_dynamic_voters(address)
    except NoQuorum as error:
        return LiveFacts(name=name, no_quorum=str(error), cluster_id=cluster_id)
    except ClusterError as error:
        return LiveFacts(name=name, failure=str(error))
    now_ms = int(time.time() * 1000)
    return replace(_facts(name, described, now_ms), cluster_id=cluster_id, is_dynamic=is_dynamic)


def held_by(address: str, node_id: int) -> Holdings:
    """As the committed metadata says. Raises ClusterError."""
    with opened(address) as files:
        image = replay(files, Moment()).image
    states = [state for _, _, state in image.partitions_with(node_id)]
    return Holdings(
        broker_id=node_id,
        is_registered=node_id in image.brokers,
        replicas=len(states),
        only_in_sync=sum(state.isr == (node_id,) for state in states),
    )


def _facts(name: str, described: DescribeQuorumResponse, now_ms: int) -> LiveFacts:
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
    voters, observers = (
        tuple(_voter(each, leaders_ms, endpoints.get(each.replica_id, "")) for each in found)
        for found in (partition.current_voters, partition.observers)
    )
    named = [voter.endpoint for voter in voters if voter.endpoint]
    with ThreadPoolExecutor(max_workers=_PROBES_AT_ONCE) as pool:
        reasons = dict(zip(named, pool.map(_why_unreachable, named), strict=True))
    return LiveFacts(
        name=name,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=partition.high_watermark,
        voters=voters,
        observers=observers,
        clock_difference_ms=leaders_ms - now_ms,
        unreachable={endpoint: why for endpoint, why in reasons.items() if why is not None},
    )


def _voter(state: QuorumReplica, leaders_ms: int, endpoint: str) -> LiveVoter:
    """Times are by the leader's clock."""
    since_ms = leaders_ms - state.last_caught_up_timestamp
    directory_id = state.replica_directory_id
    return LiveVoter(
        id=state.replica_id,
        end_offset=state.log_end_offset,
        behind_ms=-1 if state.last_caught_up_timestamp < 0 else max(0, since_ms),
        directory_id=None if directory_id == ZERO_UUID else uuid_text(directory_id),
        endpoint=endpoint,
    )


def _why_unreachable(endpoint: str) -> str | None:
    host, _, port = endpoint.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), _CONNECT_SECONDS):
            return None
    except OSError as error:
        return str(error)
