"""What to say, and what to become, when a peer asks for a vote, begins an epoch or ends one.

Checks are made in Kafka's order and end in a `Judgement`. `raft_node` changes role by it, and only
then answers: the answer speaks of the new role, and waits until that is saved.

Source: KIP-595, KIP-853, KIP-996; Kafka's handleVoteRequest, handleBeginQuorumEpochRequest and
handleEndQuorumEpochRequest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from quorum.core.types import EPOCH_MAX, Endpoint, OffsetAndEpoch, ReplicaKey
from quorum.raft import becoming, electing, following, transitions, vote
from quorum.raft.messages import election_partition, epoch_response, vote_response
from quorum.raft.replica import Replica
from quorum.raft.responses import KnownLeader
from quorum.raft.roles import Follower, Prospective, Role, Unattached
from quorum.raft.transitions import TwoLeaders
from wire.errors import ErrorCode
from wire.messages.endpoints import Listener
from wire.messages.quorum_epochs import (
    BeginPartition,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndPartition,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VotePartition,
    VoteRequest,
    VoteResponse,
)
from wire.primitives import ZERO_UUID

__all__ = ["Ask", "Judgement", "judge", "reply"]

Ask = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest
_RESPONSES = {
    VoteRequest: VoteResponse,
    BeginQuorumEpochRequest: BeginQuorumEpochResponse,
    EndQuorumEpochRequest: EndQuorumEpochResponse,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """`top_level` refuses the message as a whole; `become` is None where the role stays."""

    top_level: ErrorCode = ErrorCode.NONE
    error: ErrorCode = ErrorCode.NONE
    granted: bool = False
    become: Role | TwoLeaders | None = None


def judge(replica: Replica, role: Role, ask: Ask, now_ms: int) -> Judgement:
    top_level = replica.check_cluster(ask.cluster_id)
    if top_level is not ErrorCode.NONE:
        return Judgement(top_level=top_level)
    match ask:
        case VoteRequest():
            return _vote_asked(replica, role, ask, now_ms)
        case BeginQuorumEpochRequest():
            return _epoch_begun(replica, role, ask, now_ms)
        case EndQuorumEpochRequest():
            return _epoch_ended(replica, role, ask, now_ms)


def reply(ask: Ask, judged: Judgement, known: KnownLeader) -> object:
    """`known` is what the new role knows."""
    if judged.top_level is not ErrorCode.NONE:
        return _RESPONSES[type(ask)](error_code=judged.top_level, topics=())
    match ask:
        case VoteRequest():
            return vote_response(known, error=judged.error, granted=judged.granted)
        case BeginQuorumEpochRequest():
            return epoch_response(BeginQuorumEpochResponse, known, error=judged.error)
        case EndQuorumEpochRequest():
            return epoch_response(EndQuorumEpochResponse, known, error=judged.error)


# --- Vote -----------------------------------------------------------------------------------


def _vote_asked(replica: Replica, role: Role, request: VoteRequest, now_ms: int) -> Judgement:
    """A later epoch is adopted before the vote is judged, and even if it is refused."""
    ask = election_partition(request.topics)
    if ask is None:
        return Judgement(top_level=ErrorCode.INVALID_REQUEST)
    error = vote.check_vote(ask, role.epoch)
    if error is not ErrorCode.NONE:
        return Judgement(error=error)
    become: Role | None = None
    if ask.replica_epoch > role.epoch:
        become = becoming.unattached(replica, role, epoch=ask.replica_epoch, now_ms=now_ms)
    error = check_receiver(replica, request.voter_id, ask.voter_directory_id)
    if error is not ErrorCode.NONE:
        return Judgement(error=error, become=become)
    return _decide(replica, role if become is None else become, ask, become, now_ms)


def _decide(
    replica: Replica, role: Role, ask: VotePartition, become: Role | None, now_ms: int
) -> Judgement:
    candidate = ReplicaKey(ask.replica_id, ask.replica_directory_id)
    last = OffsetAndEpoch(offset=ask.last_offset, epoch=ask.last_offset_epoch)
    ours = replica.log.end
    if ask.pre_vote:
        granted = vote.grants_pre_vote(role, last=last, ours=ours)
        if not granted and isinstance(role, Prospective):
            electing.ask_again(role, candidate.id)
        return Judgement(granted=granted, become=become)
    granted = vote.grants_vote(role, candidate, last=last, ours=ours)
    if granted and role.voted is None:
        assert isinstance(role, Unattached | Prospective), role
        become = Unattached(
            epoch=role.epoch,
            leader_id=role.leader_id,
            voted=candidate,
            election_deadline_ms=replica.election_deadline_ms(now_ms),
        )
    return Judgement(granted=granted, become=become)


def check_receiver(replica: Replica, voter_id: int, directory_id: UUID) -> ErrorCode:
    """Is it us who are asked, and with this disk? Old versions do not say."""
    is_us = voter_id in (-1, replica.node_id)
    is_our_disk = directory_id in (ZERO_UUID, replica.key.directory_id)
    return ErrorCode.NONE if is_us and is_our_disk else ErrorCode.INVALID_VOTER_KEY


# --- BeginQuorumEpoch and EndQuorumEpoch ------------------------------------------------------


def _epoch_begun(
    replica: Replica, role: Role, request: BeginQuorumEpochRequest, now_ms: int
) -> Judgement:
    ask = election_partition(request.topics)
    heard = _hear_leader(replica, role, ask, request.leader_endpoints, now_ms)
    if ask is None or heard.error is not ErrorCode.NONE:
        return heard
    become = heard.become
    if become is None and isinstance(role, Prospective):
        become = electing.rejoin(replica, role, now_ms)  # the leader itself has spoken
    error = check_receiver(replica, request.voter_id, ask.voter_directory_id)
    return Judgement(error=error, become=become)


def _epoch_ended(
    replica: Replica, role: Role, request: EndQuorumEpochRequest, now_ms: int
) -> Judgement:
    """A follower whose leader ends its epoch campaigns soon, the most up-to-date one first."""
    ask = election_partition(request.topics)
    heard = _hear_leader(replica, role, ask, request.leader_endpoints, now_ms)
    if ask is None or heard.error is not ErrorCode.NONE:
        return heard
    follower = role if heard.become is None else heard.become
    if isinstance(follower, Follower) and follower.leader_id == ask.leader_id:
        backoff_ms = following.end_epoch_backoff_ms(
            replica.key,
            [key.candidate_id for key in ask.preferred_candidates],
            replica.config.election_backoff_max_ms,
        )
        following.leader_ended(follower, now_ms + backoff_ms)
    return heard


def _hear_leader(
    replica: Replica,
    role: Role,
    ask: BeginPartition | EndPartition | None,
    endpoints: Sequence[Listener],
    now_ms: int,
) -> Judgement:
    """What the word of a leader means, whatever else it says."""
    if ask is None:
        return Judgement(top_level=ErrorCode.INVALID_REQUEST)
    error = _check_leader(replica, role, ask.leader_id, ask.leader_epoch)
    if error is not ErrorCode.NONE:
        return Judgement(error=error)
    endpoint = _endpoint(replica, ask.leader_id, endpoints)
    told = KnownLeader(leader_id=ask.leader_id, epoch=ask.leader_epoch, endpoint=endpoint)
    return Judgement(become=transitions.maybe_transition(replica, role, told, now_ms))


def _check_leader(replica: Replica, role: Role, leader_id: int, epoch: int) -> ErrorCode:
    """Nobody but this replica tells it that it leads."""
    if epoch < role.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader_id < 0 or leader_id == replica.node_id or epoch > EPOCH_MAX:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _endpoint(replica: Replica, leader_id: int, endpoints: Sequence[Listener]) -> Endpoint | None:
    """Where the sender says it listens: on our listener if it has that, else on its first."""
    wanted = replica.config.listener_name
    for endpoint in sorted(endpoints, key=lambda endpoint: endpoint.name != wanted):
        return Endpoint(leader_id, endpoint.host, endpoint.port)
    return None
