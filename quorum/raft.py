"""RaftNode: one replica of the metadata log, in whatever role it is.

Routes by message and by role, checks what every request must pass, and changes role. What a role
does is in `electing`, `leading`, `serving` and `following`; who gets a vote, in `vote`; what an
epoch or a leader heard of means, in `heeding`. Nothing here knows what the log holds.

Source: KIP-595; Raft thesis chapter 3; the order of checks is Kafka's (KafkaRaftClient).
"""

from random import Random
from typing import assert_never

from quorum import answering, electing, following, heeding, leading, serving
from quorum.application import State
from quorum.config import QuorumConfig
from quorum.describing import describe_node, node_facts
from quorum.effects import (
    Effect,
    EpochStart,
    Event,
    LogState,
    Opened,
    ReadDone,
    Reply,
    Request,
    RequestFailed,
    Response,
    SnapshotRead,
    SnapshotSaved,
    StorageFailed,
    Stored,
    TimestampFound,
    Token,
    Trimmed,
    earliest,
)
from quorum.heeding import TwoLeaders
from quorum.log import ReplicaLog
from quorum.messages import Known, fetch_response, is_metadata_topic
from quorum.outbox import Outbox
from quorum.refusals import Refusals
from quorum.replica import Replica
from quorum.responses import PeerResponse, is_granted, partition_of, said
from quorum.roles import (
    ALLOWED,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
    election_of,
    leader_of,
    name_of,
)
from quorum.storage import METADATA_LOG
from quorum.types import ElectionState, Endpoint, LeaderAndEpoch, OffsetAndEpoch
from quorum.voter_history import VoterHistory
from wire.errors import ErrorCode
from wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from wire.messages.describe_quorum import DescribeQuorumRequest
from wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from wire.messages.fetch import FetchRequest, FetchResponse
from wire.messages.fetch_snapshot import FetchSnapshotRequest
from wire.messages.vote import VoteRequest, VoteResponse

__all__ = ["RaftNode", "initial_role"]

_TRANSITIONS_MAX = 8  # in a row, without an event between them: more is a loop


def initial_role(replica: Replica, election: ElectionState, now_ms: int) -> Role:
    """What a replica is after a restart: never a leader (KAFKA-10527), even of its own epoch.

    A leader may have lost records that it had not synced, so (epoch, offset) could come to name
    two different records. A log that already holds records of an epoch in which we voted for
    ourselves says the same: we led it.
    """
    timer_ms = now_ms + replica.election_timeout_ms() if replica.is_voter else None
    epoch, leader_id, voted = election.epoch, election.leader_id, election.voted
    log_epoch = replica.log.last_epoch
    if epoch < log_epoch:
        return Unattached(epoch=log_epoch, election_deadline_ms=timer_ms)
    if leader_id == replica.node_id:
        return Resigned(
            epoch=epoch,
            voted=voted,
            election_deadline_ms=now_ms + replica.election_timeout_ms(),
            unacknowledged={voter.node_id: voter for voter in replica.other_voters()},
        )
    is_own_vote = voted is not None and voted.matches(replica.key)
    if is_own_vote and leader_id is None and epoch > log_epoch and replica.is_voter:
        return electing.candidate_again(replica, epoch, now_ms)
    endpoint = None if leader_id is None else replica.voters.endpoint_of(leader_id)
    unattached = Unattached(
        epoch=epoch, leader_id=leader_id, voted=voted, election_deadline_ms=timer_ms
    )
    if leader_id is None or endpoint is None:
        return unattached
    return following.follow(
        replica, unattached, epoch=epoch, leader_id=leader_id, endpoint=endpoint, now_ms=now_ms
    )


class RaftNode:
    """A `Core` and the `MetadataLog` of the applications beside it.

    After `Stop` it says and does nothing more.
    """

    def __init__(
        self,
        config: QuorumConfig,
        log_state: LogState,
        election: ElectionState,
        random: Random,
        now_ms: int,
    ) -> None:
        self.replica = Replica(
            config=config,
            history=VoterHistory.recovered(config.voters, config.listener_name, log_state),
            log=ReplicaLog(log_state),
            outbox=Outbox(METADATA_LOG),
            random=random,
        )
        self._election = election  # as last saved
        self._now_ms = now_ms
        self._has_stopped = False
        self._leaving_until_ms: int | None = None  # set by an orderly shutdown
        self._refusals = Refusals()
        self.role: Role = initial_role(self.replica, election, now_ms)
        self._entered("start", now_ms)
        self._poll(now_ms)

    # --- MetadataLog: what applications see ---------------------------------------------------

    @property
    def node_id(self) -> int:
        return self.replica.node_id

    @property
    def leader(self) -> LeaderAndEpoch:
        leader_id = None if isinstance(self.role, Resigned) else leader_of(self.role, self.node_id)
        return LeaderAndEpoch(leader_id, self.role.epoch)

    @property
    def high_watermark(self) -> int | None:
        if isinstance(self.role, Leader):
            return self.role.high_watermark
        return self.replica.log.high_watermark

    @property
    def end_offset(self) -> int:
        return self.replica.log.end_offset

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        """A voter's listener, or that of the leader, which need not be known as a voter yet."""
        if isinstance(self.role, Follower | Prospective) and self.role.leader_id == node_id:
            return self.role.leader_endpoint or self.replica.voters.endpoint_of(node_id)
        return self.replica.voters.endpoint_of(node_id)

    def append(self, batch: bytes, now_ms: int) -> int:
        assert isinstance(self.role, Leader), f"append as {name_of(self.role)}"
        self._now_ms = now_ms
        return leading.append(self.replica, self.role, batch)

    def resign(self, now_ms: int) -> None:
        if isinstance(self.role, Leader) and not self._has_stopped:
            self._become(leading.resigned(self.replica, self.role, now_ms), now_ms)
            self._poll(now_ms)

    # --- Engine: what the member sees beyond that ---------------------------------------------

    @property
    def log_name(self) -> str:
        return METADATA_LOG

    @property
    def start_offset(self) -> int:
        return self.replica.log.start_offset

    @property
    def committed_through(self) -> int:
        """All before it may be delivered. Never goes back, whoever leads."""
        return self.replica.log.committed_offset

    @property
    def leading_since(self) -> EpochStart | None:
        """The epoch that this replica leads, and where it began."""
        if isinstance(self.role, Leader):
            return EpochStart(self.role.epoch, self.role.epoch_start_offset)
        return None

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return None

    @property
    def is_saving_snapshot(self) -> bool:
        return False

    def save_snapshot(self, state: State, *, last_timestamp_ms: int, now_ms: int) -> None:
        raise NotImplementedError

    def serves(self, body: object) -> bool:
        match body:
            case FetchRequest():
                return any(is_metadata_topic(topic) for topic in body.topics)
            case (
                VoteRequest()
                | BeginQuorumEpochRequest()
                | EndQuorumEpochRequest()
                | DescribeQuorumRequest()
                | FetchSnapshotRequest()
            ):
                return True
            case _:
                return False

    def shut_down(self, now_ms: int) -> None:
        """Leave in good order: a leader tells the others before the process ends."""
        if self._leaving_until_ms is None:
            self.replica.outbox.trace("shutdown", role=name_of(self.role))
            self._leaving_until_ms = now_ms + self.replica.config.shutdown_timeout_ms
            self.resign(now_ms)
            self._poll(now_ms)

    def is_in_quorum(self, now_ms: int) -> bool:
        """Does it lead, or hear from who leads? An observer follows a silent leader for ever."""
        match self.role:
            case Leader():
                return True
            case Follower(fetch_deadline_ms=deadline_ms):
                return now_ms < deadline_ms
            case _:
                return False

    def describe(self) -> str:
        return describe_node(self.replica, self.role)

    def facts(self) -> dict[str, object]:
        return node_facts(self.replica, self.role)

    # --- Core ---------------------------------------------------------------------------------

    def receive(self, event: Event, now_ms: int) -> None:
        if self._has_stopped:
            return
        self._now_ms = now_ms
        match event:
            case Request():
                self._on_request(event, now_ms)
            case Response():
                self._on_response(event.token, event.body, now_ms)
            case RequestFailed():
                self._on_no_answer(event.token, now_ms)
            case Stored():
                self._on_stored(event.token)
            case ReadDone():
                if isinstance(self.role, Leader):
                    serving.read_done(self.replica, self.role, event.token.number, event.records)
            case StorageFailed():
                self._stop(f"cannot store {event.log}: {event.reason}")
            case SnapshotSaved() | SnapshotRead() | Trimmed():
                raise NotImplementedError
            case Opened() | TimestampFound():
                raise AssertionError(f"not asked for: {event}")
            case _:
                assert_never(event)
        self._poll(now_ms)

    def tick(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._poll(now_ms)

    def deadline_ms(self) -> int | None:
        if self._has_stopped:
            return None
        match self.role:
            case Leader():
                due = leading.deadline_ms(self.role)
            case Follower():
                due = following.deadline_ms(self.replica, self.role)
            case Unattached() | Prospective() | Candidate() | Resigned():
                due = electing.deadline_ms(self.replica, self.role)
        return earliest(due, self._leaving_until_ms)

    def take_effects(self) -> list[Effect]:
        """Fetches parked at the log end get all that was appended since, in one answer."""
        if isinstance(self.role, Leader) and not self._has_stopped:
            serving.serve_parked(self.replica, self.role, self._now_ms)
        return self.replica.outbox.take()

    # --- roles --------------------------------------------------------------------------------

    def _become(self, role: Role, now_ms: int) -> None:
        """The only place that changes role."""
        previous = self.role
        assert isinstance(role, ALLOWED[type(previous)]), (previous, role)
        assert role.epoch >= previous.epoch, (previous.epoch, role.epoch)
        self.role = role
        self.replica.peers.reset()
        self._entered(name_of(previous), now_ms)
        if isinstance(previous, Leader):
            for token in serving.refuse_all(previous):
                refusal = fetch_response(self._known(), error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
                self.replica.outbox.say(Reply(token=token, body=refusal))

    def _entered(self, previous: str, now_ms: int) -> None:
        """Save first: whatever is said from now on speaks of the new epoch, vote or leader."""
        role = self.role
        self.replica.outbox.trace(
            "role",
            role=name_of(role),
            epoch=role.epoch,
            leader=leader_of(role, self.node_id),
            node=self.node_id,
            previous=previous,
        )
        election = election_of(role, self.node_id)
        if election != self._election:
            self._election = election
            self.replica.outbox.save(election)
        if isinstance(role, Leader):
            leading.enter(self.replica, role, now_ms)

    def _poll(self, now_ms: int) -> None:
        """Let the role do what is due, and what it has become after that."""
        for _ in range(_TRANSITIONS_MAX):
            if self._has_stopped:
                return
            role = self._next_role(now_ms)
            if role is None:
                break
            self._become(role, now_ms)
        else:
            raise AssertionError(f"no end of transitions at {name_of(self.role)}")
        if isinstance(self.role, Leader):
            serving.serve_parked(self.replica, self.role, now_ms)

    def _next_role(self, now_ms: int) -> Role | None:
        if self._leaving_until_ms is not None:
            self._leave(self._leaving_until_ms, now_ms)
            return None
        match self.role:
            case Unattached():
                return electing.poll_unattached(self.replica, self.role, now_ms)
            case Prospective():
                return electing.poll_prospective(self.replica, self.role, now_ms)
            case Candidate():
                return electing.poll_candidate(self.replica, self.role, now_ms)
            case Resigned():
                return electing.poll_resigned(self.replica, self.role, now_ms)
            case Leader():
                return leading.poll(self.replica, self.role, now_ms)
            case Follower():
                if following.is_leader_gone(self.replica, self.role, now_ms):
                    return electing.stand(self.replica, self.role, now_ms)
                following.poll(self.replica, self.role, now_ms)
                return None

    def _leave(self, until_ms: int, now_ms: int) -> None:
        """Stop once the others know, or cannot be told in time. Nobody else has to be told."""
        match self.role:
            case Resigned(unacknowledged=unaware, election_deadline_ms=deadline_ms) as role:
                if unaware and now_ms < min(until_ms, deadline_ms):
                    electing.tell_resigned(self.replica, role, now_ms)
                    return
            case _:
                pass
        self._has_stopped = True
        self.replica.outbox.stop("shut down", 0)

    def _stop(self, reason: str) -> None:
        self._has_stopped = True
        self.replica.outbox.stop(reason, 1)

    def _known(self) -> Known:
        """A leader that nobody could find is not named: Kafka's replicas fail on that."""
        leader_id = leader_of(self.role, self.node_id)
        endpoint = None if leader_id is None else self.endpoint_of(leader_id)
        if leader_id is None or endpoint is None:
            return Known(leader_id=-1, epoch=self.role.epoch)
        return Known(leader_id=leader_id, epoch=self.role.epoch, endpoint=endpoint)

    # --- events -------------------------------------------------------------------------------

    def _on_request(self, request: Request, now_ms: int) -> None:
        match request.body:
            case VoteRequest() | BeginQuorumEpochRequest() | EndQuorumEpochRequest() as body:
                judged = answering.judge(self.replica, self.role, body, now_ms)
                self._heed(judged.become, now_ms)
                reply = answering.reply(body, judged, self._known())
            case FetchRequest() as body:
                reply = serving.refusal(self.replica, self.role, body, self._known())
                if reply is None and isinstance(self.role, Leader):
                    serving.fetch(self.replica, self.role, request.token, body, now_ms=now_ms)
            case DescribeQuorumRequest() as body:
                reply = serving.describe(self.replica, self.role, body, now_ms)
            case FetchSnapshotRequest() as body:
                reply = serving.refuse_snapshot(self.replica, self.role, body, self._known())
            case body:
                raise AssertionError(f"not a request of the quorum: {type(body).__name__}")
        if reply is not None and not self._has_stopped:
            self.replica.outbox.say(Reply(token=request.token, body=reply))

    def _heed(self, become: Role | TwoLeaders | None, now_ms: int) -> None:
        match become:
            case None:
                pass
            case TwoLeaders():
                self._stop(str(become))
            case role:
                self._become(role, now_ms)

    def _on_response(self, token: Token, body: object, now_ms: int) -> None:
        source = self.replica.peers.answered(token.number)
        if source is None:
            return
        assert isinstance(body, PeerResponse), body
        told = said(body, source)
        role = self.role
        if told.error is not ErrorCode.UNKNOWN_LEADER_EPOCH:
            news = heeding.heed(
                self.replica,
                role,
                epoch=told.epoch,
                leader_id=told.leader_id,
                told=told.endpoint,
                now_ms=now_ms,
            )
            self._heed(news, now_ms)
        if self._has_stopped:
            return
        if self._refusals.heard(source.node_id, told.error):
            self._note_refusal(source, told.error)
        if told.error is not ErrorCode.NONE or told.epoch != self.role.epoch:
            self._refused(role, source, told.error, now_ms)
        else:
            self._accepted(source, body, now_ms)

    def _refused(self, role: Role, source: Endpoint, error: ErrorCode, now_ms: int) -> None:
        """Nothing to use in the answer. Unless it made us change role, ask again, but not soon."""
        if role is not self.role:
            return
        self.replica.peers.back_off(
            source.node_id, now_ms + self.replica.config.discovery_backoff_ms
        )
        if isinstance(self.role, Follower):
            following.fetch_failed(self.role, source)

    def _note_refusal(self, source: Endpoint, error: ErrorCode) -> None:
        self.replica.outbox.trace("refused", by=source.node_id, error=error.name)
        config = self.replica.config
        asked = self.replica.voters.ids or tuple(s.node_id for s in config.discovery_servers)
        if self._refusals.leave_no_majority(asked):
            self._stop(
                f"this node is of cluster {config.cluster_id}, but the controllers that it is "
                "given are of another: correct controller.quorum.voters, or the directory"
            )

    def _accepted(self, source: Endpoint, body: PeerResponse, now_ms: int) -> None:
        match body, self.role:
            case VoteResponse(), Prospective() | Candidate() as role:
                electing.record_vote(role, source.node_id, granted=is_granted(body))
            case EndQuorumEpochResponse(), Resigned() as role:
                role.unacknowledged.pop(source.node_id, None)
            case FetchResponse(), Follower() as role:
                answer = partition_of(body)
                assert answer is not None, "checked by said()"
                reason = following.fetched(self.replica, role, answer, source=source, now_ms=now_ms)
                if reason is not None:
                    self._stop(reason)
            case FetchResponse(), Unattached():
                # The leader's own answer, but it is not known where it is: ask on.
                self._refused(self.role, source, ErrorCode.NONE, now_ms)
            case _:
                pass

    def _on_no_answer(self, token: Token, now_ms: int) -> None:
        source = self.replica.peers.answered(token.number)
        if source is None:
            return
        self.replica.peers.back_off(source.node_id, now_ms + self.replica.config.retry_backoff_ms)
        match self.role:
            case Follower():
                following.fetch_failed(self.role, source)
            case Resigned() if self._leaving_until_ms is not None:
                # Whoever cannot be told at once will find out: a stop of all must not wait.
                self.role.unacknowledged.pop(source.node_id, None)
            case _:
                pass

    def _on_stored(self, token: Token) -> None:
        self.replica.log.stored(token.number)
        self.replica.outbox.stored(token.number)
        if isinstance(self.role, Leader):
            leading.advance_high_watermark(self.replica, self.role)
