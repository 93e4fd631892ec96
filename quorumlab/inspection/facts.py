"""The facts of a diagnosis, read from directories and asked of addresses, and its findings."""

import socket
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import Enum

from jepsen_like.real.client_settings import PLAIN, ClientSettings
from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.identity import VoterSet, identify
from quorumlab.inspection.live import (
    NoQuorum,
    cluster_id_of,
    describe_quorum_of,
    has_dynamic_voters,
)
from quorumlab.inspection.states import Moment, replay
from quorumlab.inspection.stream import opened
from quorumlab.inspection.summary import summarize
from quorumlab.inspection.target import Address, Target
from wire.messages.voters import DescribeQuorumResponse, QuorumReplica
from wire.primitives import ZERO_UUID, uuid_text

__all__ = [
    "Finding",
    "Holdings",
    "Level",
    "LiveFacts",
    "LiveVoter",
    "ReplicaFacts",
    "ask",
    "held_by",
    "read",
]

_CONNECT_SECONDS = 2.0
_PROBES_AT_ONCE = 16


class Level(Enum):
    PROBLEM = "problem"
    WARNING = "warning"
    FINE = "fine"


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFacts:
    """A directory. What could not be read is None or empty."""

    name: str  # as it was given
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None
    last_epoch: int = -1
    end_offset: int = -1
    voters: VoterSet = field(default_factory=VoterSet)
    problems: tuple[str, ...] = ()
    torn_tail: str = ""  # a write that was cut off, or is under way


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveVoter:
    """A voter, or an observer that is no broker, as the leader knows it."""

    id: int
    end_offset: int
    behind_ms: int  # since it was last caught up; -1: it has never fetched
    directory_id: str | None = None  # None: the leader does not know it
    endpoint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFacts:
    """The answer of an address. `failure` says why there was none."""

    name: str
    failure: str | None = None
    no_quorum: str = ""  # what it said instead of describing one: a design on ZooKeeper
    cluster_id: str | None = None
    leader_id: int = -1
    leader_epoch: int = -1
    high_watermark: int = -1
    is_dynamic: bool = False  # kraft.version 1 and later: voters come and go as records
    voters: tuple[LiveVoter, ...] = ()
    observers: tuple[LiveVoter, ...] = ()
    clock_difference_ms: int = 0  # of the leader's to ours
    unreachable: Mapping[str, str] = field(default_factory=dict)  # endpoints of voters, and why

    @property
    def option(self) -> str:
        """The option of `quorumlab quorum` that names this node."""
        is_controller = any(voter.endpoint == self.name for voter in self.voters)
        return f"--bootstrap-{'controller' if is_controller else 'server'} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """The replicas that would go with a broker."""

    broker_id: int
    is_registered: bool = False
    replicas: int = 0
    only_in_sync: int = 0  # partitions of which nobody else is in sync


# --- reading and asking ----------------------------------------------------------------------


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


def held_by(address: str, node_id: int, settings: ClientSettings = PLAIN) -> Holdings:
    """Reads the committed metadata. Raises ClusterError."""
    with opened(address, settings) as files:
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
