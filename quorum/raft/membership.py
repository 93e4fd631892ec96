"""Who may become a voter or cease to be one, and when: the leader's side of KIP-853.

One change at a time, and of one voter: then any two majorities, of before and of after, share a
voter (thesis 4.1). A new set counts from the moment it is written. So a leader writes none before a
record of its own epoch is committed: a set that an earlier leader wrote and nobody knows of could
have a majority that shares no voter with ours (raft-dev 2015, "bug in single-server changes").

A new voter must know the kraft.version in force and have caught up: else adding it could stop the
quorum. A leader that is removed leads on, without counting itself, until that is committed.

What a follower asks for by itself is in `quorum.raft.reporting`. The order of checks and their
errors are Kafka's. As there, a change has the leader's request timeout, whatever TimeoutMs the
request names; and the last voter, whom none could replace, is `VOTER_NOT_FOUND`.

Source: KIP-853; Raft thesis 4.1 and 4.2; Kafka's AddVoterHandler, RemoveVoterHandler and
UpdateVoterHandler.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from quorum.core.effects import Reply, Request
from quorum.core.types import Endpoint, ReplicaKey
from quorum.log import fetch
from quorum.raft import leading
from quorum.raft.replica import VOTE_CHANNEL, Replica
from quorum.raft.responses import KnownLeader, versions_of
from quorum.raft.roles import Leader, Role, VoterChange
from quorum.raft.voter_history import record_of
from quorum.raft.voters import KRAFT_VERSION, Voter, VoterSet
from wire.control_records import KRaftVersionRange, VoterEndpoint
from wire.errors import ErrorCode
from wire.messages.endpoints import Listener
from wire.messages.features import ApiVersionsRequest, ApiVersionsResponse
from wire.messages.voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    CurrentLeader,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from wire.primitives import ZERO_UUID, uuid_text

__all__ = [
    "Ask",
    "Refusal",
    "abandon",
    "answer",
    "poll",
    "versions_told",
    "why_no_change",
]

_SOFTWARE = ("quorumlab", "0.1.0")

Ask = AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest


@dataclass(frozen=True, slots=True)
class Refusal:
    error: ErrorCode
    why: str


_ANOTHER_CLUSTER = Refusal(ErrorCode.INCONSISTENT_CLUSTER_ID, "this is another cluster")
_NO_LEADER = "this node does not lead the quorum"


# --- requests --------------------------------------------------------------------------------


def answer(
    replica: Replica, role: Role, request: Request, known: KnownLeader, now_ms: int
) -> object | None:
    """The answer to an `Ask`; None if it comes later, by `poll` or `abandon`."""
    refused = _begin(replica, role, request, now_ms)
    if isinstance(request.body, UpdateRaftVoterRequest):
        error = ErrorCode.NONE if refused is None else refused.error
        return UpdateRaftVoterResponse(error_code=error, current_leader=_leader(known))
    is_addition = isinstance(request.body, AddRaftVoterRequest)
    return None if refused is None else _reply(refused, is_addition=is_addition)


def _begin(replica: Replica, role: Role, request: Request, now_ms: int) -> Refusal | None:
    """Make the change, or begin it; else why not."""
    ask = request.body
    assert isinstance(ask, Ask), ask
    if replica.check_cluster(ask.cluster_id) is not ErrorCode.NONE:
        return _ANOTHER_CLUSTER
    if isinstance(ask, UpdateRaftVoterRequest):
        return _update(replica, role, ask, now_ms)
    if not isinstance(role, Leader):
        return Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, _NO_LEADER)
    if isinstance(ask, AddRaftVoterRequest):
        return _add(replica, role, request.token, ask, now_ms)
    return _remove(replica, role, request.token, ask, now_ms)


def _reply(refused: Refusal | None, *, is_addition: bool) -> object:
    response = AddRaftVoterResponse if is_addition else RemoveRaftVoterResponse
    if refused is None:
        return response()
    return response(error_code=refused.error, error_message=refused.why)


def _leader(known: KnownLeader) -> CurrentLeader:
    at = known.endpoint
    if at is None:
        return CurrentLeader(leader_id=known.leader_id, leader_epoch=known.epoch)
    return CurrentLeader(
        leader_id=known.leader_id, leader_epoch=known.epoch, host=at.host, port=at.port
    )


def why_no_change(replica: Replica, role: Leader) -> Refusal | None:
    """What forbids any change of the voters now. All of it passes but the kraft.version."""
    latest = replica.history.latest
    if role.change is not None:
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is under way")
    if role.high_watermark is None:
        why = "the leader has committed nothing in its epoch yet"
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, why)
    if latest.kraft_version == 0:
        why = f"the voters are static: {KRAFT_VERSION} is 0"
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, why)
    if latest.voters_offset >= role.high_watermark:
        why = f"the voters of offset {latest.voters_offset} are not committed yet"
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, why)
    return None


# --- AddRaftVoter ----------------------------------------------------------------------------


def _add(
    replica: Replica, role: Leader, token: int, ask: AddRaftVoterRequest, now_ms: int
) -> Refusal | None:
    key = ReplicaKey(ask.voter_id, ask.voter_directory_id)
    endpoint = _endpoint(replica, key, ask.listeners)
    if endpoint is None:
        why = (
            f"a voter has an id, a directory id, and a listener {replica.config.listener_name!r}:"
            f" {_name(key)} with {_names(ask.listeners)} is none"
        )
        return Refusal(ErrorCode.INVALID_REQUEST, why)
    refused = why_no_change(replica, role)
    if refused is not None:
        return refused
    if ask.voter_id in replica.voters.ids:
        why = f"node {ask.voter_id} is a voter already, of {_voter_names(replica.voters)}"
        return Refusal(ErrorCode.DUPLICATE_VOTER, why)
    if not replica.peers.is_free(endpoint.node_id, now_ms):
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, f"{_name(key)} was asked just before")
    software, version = _SOFTWARE
    question = ApiVersionsRequest(client_software_name=software, client_software_version=version)
    role.change = VoterChange(
        token=token,
        adds=Voter(key, endpoint, _voter_endpoints(ask.listeners)),
        ack_when_committed=ask.ack_when_committed,
        deadline_ms=now_ms + replica.config.request_timeout_ms,
        asking=replica.ask(endpoint, VOTE_CHANNEL, question),
    )
    return None


def versions_told(
    replica: Replica, role: Leader, number: int, body: ApiVersionsResponse | None, now_ms: int
) -> None:
    """The node that is to be a voter has answered, or has not."""
    change = role.change
    if change is None or change.adds is None or change.asking != number:
        return
    change.asking = None
    key = change.adds.key
    if body is None or body.error_code is not ErrorCode.NONE:
        at = change.adds.endpoint
        why = f"{_name(key)} does not answer at {at.host}:{at.port}"
        _finish(replica, role, Refusal(ErrorCode.REQUEST_TIMED_OUT, why))
        return
    voter = Voter(key, change.adds.endpoint, change.adds.listeners, versions_of(body))
    if not voter.supports(replica.kraft_version):
        why = f"{_name(key)} does not know {KRAFT_VERSION} {replica.kraft_version}"
        _finish(replica, role, Refusal(ErrorCode.INVALID_REQUEST, why))
    elif not _has_caught_up(replica, role, key, now_ms):
        why = f"{_name(key)} has not caught up with the log as an observer of this quorum"
        _finish(replica, role, Refusal(ErrorCode.REQUEST_TIMED_OUT, why))
    else:
        _write(replica, role, change, replica.voters.with_voter(voter), now_ms)


def _has_caught_up(replica: Replica, role: Leader, key: ReplicaKey, now_ms: int) -> bool:
    """Once, and heard of since: the log may grow faster than anybody fetches (KAFKA-16535)."""
    progress = role.observers.get(key)
    if progress is None or progress.last_caught_up_ms < 0:
        return False
    return progress.last_fetch_ms > now_ms - replica.config.caught_up_within_ms


# --- RemoveRaftVoter -------------------------------------------------------------------------


def _remove(
    replica: Replica, role: Leader, token: int, ask: RemoveRaftVoterRequest, now_ms: int
) -> Refusal | None:
    key = ReplicaKey(ask.voter_id, ask.voter_directory_id)
    if not _is_key(key):
        why = f"a voter has an id and a directory id: {_name(key)} is none"
        return Refusal(ErrorCode.INVALID_REQUEST, why)
    refused = why_no_change(replica, role)
    if refused is not None:
        return refused
    if key not in replica.voters.keys:
        why = f"{_name(key)} is none of the voters, {_voter_names(replica.voters)}"
        return Refusal(ErrorCode.VOTER_NOT_FOUND, why)
    if len(replica.voters) == 1:
        why = f"{_name(key)} is the only voter: add another one first"
        return Refusal(ErrorCode.VOTER_NOT_FOUND, why)
    change = VoterChange(
        token=token, adds=None, deadline_ms=now_ms + replica.config.request_timeout_ms
    )
    role.change = change
    _write(replica, role, change, replica.voters.without(key.id), now_ms)
    return None


# --- UpdateRaftVoter -------------------------------------------------------------------------


def _update(
    replica: Replica, role: Role, ask: UpdateRaftVoterRequest, now_ms: int
) -> Refusal | None:
    error = fetch.check_known_epoch(
        ask.current_leader_epoch, role.epoch, is_leader=isinstance(role, Leader)
    )
    if error is not ErrorCode.NONE or not isinstance(role, Leader):
        return Refusal(error, _NO_LEADER)
    voter = _voter_told(replica, ask)
    if voter is None:
        return Refusal(ErrorCode.INVALID_REQUEST, "no whole voter")
    refused = why_no_change(replica, role)
    is_static = replica.kraft_version == 0
    if refused is not None and not (is_static and role.high_watermark is not None):
        return refused
    if not voter.supports(replica.kraft_version):
        return Refusal(ErrorCode.INVALID_REQUEST, "not of the kraft.version in force")
    known = role.updated_voters.get(voter.key.id) if is_static else replica.voters.get(voter.key.id)
    if known is None or not (is_static or known.key.matches(voter.key)):
        return Refusal(ErrorCode.VOTER_NOT_FOUND, "no voter")
    if is_static:
        # For the day on which the voters move to the log.
        role.updated_voters = role.updated_voters.with_voter(voter)
    elif known != voter:
        updated = record_of(replica.voters.with_voter(voter))
        leading.append_control(replica, role, [updated], now_ms)
    return None


def _voter_told(replica: Replica, ask: UpdateRaftVoterRequest) -> Voter | None:
    key = ReplicaKey(ask.voter_id, ask.voter_directory_id)
    endpoint = _endpoint(replica, key, ask.listeners)
    told = ask.k_raft_version_feature
    if endpoint is None or not 0 <= told.min_supported_version <= told.max_supported_version:
        return None
    versions = KRaftVersionRange(
        min_supported_version=told.min_supported_version,
        max_supported_version=told.max_supported_version,
    )
    return Voter(key, endpoint, _voter_endpoints(ask.listeners), versions)


# --- a change under way ----------------------------------------------------------------------


def _write(
    replica: Replica, role: Leader, change: VoterChange, voters: VoterSet, now_ms: int
) -> None:
    change.last_offset = leading.append_control(replica, role, [record_of(voters)], now_ms)
    if not change.ack_when_committed:
        _answer(replica, change, None)


def poll(replica: Replica, role: Leader, now_ms: int) -> Role | None:
    """Answer once the change is committed, or its time is up: then it may still happen.

    A leader whose removal is committed resigns: it has no more to do (thesis 4.2.2).
    """
    committed = role.high_watermark or 0
    change = role.change
    if change is not None and change.last_offset is not None and change.last_offset < committed:
        _finish(replica, role, None)
    elif change is not None and change.deadline_ms <= now_ms:
        why = "the change was not committed in time; it may be all the same"
        _finish(replica, role, Refusal(ErrorCode.REQUEST_TIMED_OUT, why))
    if replica.is_voter or replica.history.latest.voters_offset >= committed:
        return None
    return leading.resigned(replica, role, now_ms)


def abandon(replica: Replica, role: Leader) -> None:
    """Leadership is lost: whether the change happens is for the next leader to say."""
    _finish(replica, role, Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, _NO_LEADER))


def _finish(replica: Replica, role: Leader, refused: Refusal | None) -> None:
    if role.change is not None:
        _answer(replica, role.change, refused)
        role.change = None


def _answer(replica: Replica, change: VoterChange, refused: Refusal | None) -> None:
    if change.token is None:
        return
    body = _reply(refused, is_addition=change.adds is not None)
    replica.outbox.send(Reply(token=change.token, body=body))
    change.token = None


# --- what a request names --------------------------------------------------------------------


def _is_key(key: ReplicaKey) -> bool:
    return key.id >= 0 and key.directory_id != ZERO_UUID


def _endpoint(replica: Replica, key: ReplicaKey, listeners: Sequence[Listener]) -> Endpoint | None:
    """Where all find it; None unless it is whole."""
    for listener in listeners:
        if _is_key(key) and listener.name == replica.config.listener_name:
            return Endpoint(key.id, listener.host, listener.port)
    return None


def _voter_endpoints(listeners: Sequence[Listener]) -> tuple[VoterEndpoint, ...]:
    return tuple(
        VoterEndpoint(name=listener.name, host=listener.host, port=listener.port)
        for listener in listeners
    )


def _name(key: ReplicaKey) -> str:
    return f"node {key.id} with the directory {uuid_text(key.directory_id)}"


def _names(listeners: Sequence[Listener]) -> str:
    return (
        ", ".join(f"{each.name}://{each.host}:{each.port}" for each in listeners) or "no listener"
    )


def _voter_names(voters: VoterSet) -> str:
    return ", ".join(f"{key.id} ({uuid_text(key.directory_id)})" for key in voters.keys)
