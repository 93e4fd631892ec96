"""Metadata's answer beside that of DescribeQuorum, and why they differ.

Metadata is for clients: a broker tells it, of brokers that may be used. DescribeQuorum is about the
Raft quorum: who votes, who only reads, who leads. Brokers are its observers.
ZooKeeper designs have no quorum: their controller is one of the brokers that Metadata tells of.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from quorumlab.inspection.states import Replay
from wire.messages.metadata import MetadataResponse
from wire.messages.voters import QuorumPartitionResult
from wire.zk.designs import Design

__all__ = ["TwoViews", "two_views"]

_FETCHING_MS = 3000  # who has nothing to fetch asks again after half a second


class TwoViews(NamedTuple):
    metadata_brokers: Sequence[int] | None  # None: nobody answered
    metadata_controller: int | None
    quorum_leader: int | None
    voters: Sequence[int] | None
    observers: Sequence[int] | None
    why: str


def two_views(
    metadata: MetadataResponse | None,
    quorum: QuorumPartitionResult | None,
    state: Replay | None,
    *,
    design: Design | None = None,
    active: int | None = None,
) -> TwoViews:
    """`design`: of ZooKeeper mode, with the broker that is its active controller."""
    brokers = None if metadata is None else sorted(each.node_id for each in metadata.brokers)
    named = None if metadata is None or metadata.controller_id < 0 else metadata.controller_id
    leader = None if quorum is None else quorum.leader_id
    voters = None if quorum is None else sorted(each.replica_id for each in quorum.current_voters)
    observers = None if quorum is None else sorted(each.replica_id for each in quorum.observers)
    if design is None:
        why = _why(brokers, named, quorum, _fenced(state))
    else:
        why = _why_without_quorum(design, active)
    return TwoViews(brokers, named, leader, voters, observers, why)


def _fetching(quorum: QuorumPartitionResult) -> Collection[int]:
    """Replicas that fetch, by the leader's clock; old versions do not say when they did."""
    replicas = {each.replica_id: each for each in (*quorum.observers, *quorum.current_voters)}
    leader = replicas.get(quorum.leader_id)
    now_ms = -1 if leader is None else leader.last_fetch_timestamp
    return {
        key
        for key, each in replicas.items()
        if min(now_ms, each.last_fetch_timestamp) < 0
        or now_ms - each.last_fetch_timestamp <= _FETCHING_MS
    }


def _fenced(state: Replay | None) -> Sequence[int]:
    known = () if state is None else state.image.brokers.values()
    return [each.id for each in known if each.fenced]


def _why_without_quorum(design: Design, active: int | None) -> str:
    """One sentence."""
    absent = f"{design.name} has no quorum that DescribeQuorum could tell of"
    if not design.has_controller:
        return f"{absent}, and no controller: the replicas of a partition elect its leader."
    if active is None:
        return f"{absent}; its controller is a broker, and none says now that it is."
    return (
        f"{absent}; its controller is broker {active}, and Metadata may name any broker, since "
        "each passes requests on to the controller."
    )


def _why(
    brokers: Sequence[int] | None,
    named: int | None,
    quorum: QuorumPartitionResult | None,
    fenced: Sequence[int],
) -> str:
    """One sentence."""
    if brokers is None and quorum is None:
        return "Neither was answered: no broker and no leader of the quorum was reached."
    if brokers is None:
        return "Metadata was not answered: no broker was reached."
    if quorum is None:
        return (
            "DescribeQuorum was not answered: no controller leads, or none was reached; brokers "
            "go on with the metadata that they have."
        )
    leader, fetching, parts = quorum.leader_id, _fetching(quorum), []
    if named is not None and named != leader:
        parts.append(
            f"Metadata names broker {named} as the controller, since clients reach brokers only "
            f"and brokers pass their requests on to controller {leader}, which leads the quorum"
        )
    hidden = [each for each in fenced if each not in brokers]
    if hidden:
        still = [each for each in hidden if each in fetching]
        gone = [each.replica_id for each in quorum.observers if each.replica_id in hidden]
        gone = [each for each in gone if each not in fetching]
        reads = f", though {_names(still)} still in touch with the quorum" if still else ""
        lists = f", whereas DescribeQuorum lists {_brokers(gone)} for minutes" if gone else ""
        parts.append(f"Metadata leaves out fenced {_brokers(hidden)}{reads}{lists}")
    silent = [each for each in brokers if each not in fetching]
    if silent:
        parts.append(
            f"DescribeQuorum does not see {_brokers(silent)} fetching the metadata log, and "
            "Metadata leaves out only who is fenced"
        )
    sentence = "; ".join(parts) if parts else "Both say the same"
    return sentence[0].upper() + sentence[1:] + "."


def _names(brokers: Sequence[int]) -> str:
    return f"{_brokers(brokers)} {'is' if len(brokers) == 1 else 'are'}"


def _brokers(brokers: Sequence[int]) -> str:
    return f"broker{'' if len(brokers) == 1 else 's'} {', '.join(map(str, brokers))}"
