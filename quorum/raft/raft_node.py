"""RaftNode: one replica of the metadata log, in any role.

It routes by message and by role, checks what every request must pass, and changes role. What a role
does is in `electing`, `leading`, `serving` and `following`, and what it does in time in `polling`.
`vote` says who gets a vote, `transitions` what follows from an epoch or a leader that a peer names.
Nothing here knows what the log holds.

Source: KIP-595; Raft thesis chapter 3; the order of checks is Kafka's (KafkaRaftClient).
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from quorum.core.application import State
from quorum.core.effects import (
    Answer,
    Effect,
    Event,
    LogState,
    ReadDone,
    Reply,
    Request,
    RequestFailed,
    Response,
    SnapshotRead,
    SnapshotSaved,
    StorageFailed,
    Stored,
    Trimmed,
    earliest,
)
from quorum.core.storage import METADATA_LOG
from quorum.core.types import EPOCH_MAX, ElectionState, Endpoint
from quorum.raft import (
    answering,
    downloading,
    electing,
    following,
    kraft_version,
    leading,
    membership,
    reporting,
    requests,
    serving,
    transitions,
)
from quorum.raft.compaction import Compaction
from quorum.raft.config import QuorumConfig
from quorum.raft.log import QuorumLog
from quorum.raft.messages import fetch_response
from quorum.raft.polling import next_role
from quorum.raft.raft_outbox import OWNER, HoldingOutbox
from quorum.raft.refusals import Refusals
from quorum.raft.replica import Replica
from quorum.raft.reporting import ReportResponse
from quorum.raft.responses import (
    CommonFields,
    PeerResponse,
    common_fields,
    news_of,
    only_partition,
)
from quorum.raft.roles import (
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
from quorum.raft.snapshot_serving import refuse_snapshots, snapshot_read
from quorum.raft.starting import initial_role, prepare_log
from quorum.raft.transitions import TwoLeaders
from quorum.raft.view import RaftView, leader_and_epoch
from quorum.raft.voter_history import VoterHistory
from wire.errors import ErrorCode
from wire.messages.features import ApiVersionsRequest, ApiVersionsResponse
from wire.messages.fetching import FetchedPartition, FetchResponse, FetchSnapshotResponse
from wire.messages.quorum_epochs import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from wire.messages.voters import AddRaftVoterRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest

__all__ = ["RaftNode", "initial_role"]

_TRANSITIONS_MAX = 8  # in a row, without an event between them: more is a loop
_QUIET = (Stored, ReadDone, Trimmed)  # answers that change neither role nor epoch nor voters
_QUORUM_REQUESTS = (
    VoteRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)


class RaftNode(RaftView):
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
        """Raises Malformed for control records, on this disk, that it does not understand."""
        self.replica = Replica(
            config=config,
            history=VoterHistory.recovered(config.voters, config.listener_name, log_state),
            log=QuorumLog(log_state),
            outbox=HoldingOutbox(METADATA_LOG),
            random=random,
        )
        self._election = election  # as last saved
        self._now_ms = now_ms
        self._has_stopped = False
        self._leaving_until_ms: int | None = None  # set by an orderly shutdown
        self._refusals = Refusals()
        self._compaction = Compaction()
        self._handlers: Mapping[type[Event], Callable[[Any, int], None]] = {
            Request: self._on_request,
            Response: self._on_response,
            RequestFailed: self._on_no_answer,
            Stored: self._on_stored,
            ReadDone: self._on_read,
            SnapshotSaved: self._on_snapshot_saved,
            SnapshotRead: self._on_snapshot_read,
            Trimmed: self._on_trimmed,
            StorageFailed: self.storage_failed,
        }
        problem = prepare_log(self.replica)
        self.role: Role = initial_role(self.replica, election, now_ms)
        self._entered("start", now_ms)
        if problem is not None:
            self._stop(problem)
        self._poll(now_ms)

    # --- MetadataLog: what applications ask for -----------------------------------------------

    def raise_kraft_version(self, version: int, now_ms: int) -> str | None:
        self._now_ms = now_ms
        return kraft_version.raise_kraft_version(self.replica, self.role, version, now_ms)

    def append(self, batch: bytes, now_ms: int) -> int:
        assert isinstance(self.role, Leader), f"append as {name_of(self.role)}"
        self._now_ms = now_ms
        return leading.append(self.replica, self.role, batch)

    def resign(self, now_ms: int) -> None:
        if isinstance(self.role, Leader) and not self._has_stopped:
            self._become(leading.resigned(self.replica, self.role, now_ms), now_ms)
            self._poll(now_ms)

    # --- Engine: what the member asks for beyond that -----------------------------------------

    @property
    def is_saving_snapshot(self) -> bool:
        return self._compaction.saving is not None

    def save_snapshot(self, state: State, *, last_timestamp_ms: int, now_ms: int) -> None:
        self._now_ms = now_ms
        if not self._has_stopped:
            self._compaction.save(self.replica, state, last_timestamp_ms)

    def shut_down(self, now_ms: int) -> None:
        """Leave in good order: a leader tells the others before the process ends."""
        if self._leaving_until_ms is None:
            self.replica.outbox.trace("shutdown", role=name_of(self.role))
            self._leaving_until_ms = now_ms + self.replica.config.shutdown_timeout_ms
            self.resign(now_ms)
            self._poll(now_ms)

    # --- Core ---------------------------------------------------------------------------------

    def receive(self, event: Event, now_ms: int) -> None:
        if not self._has_stopped:
            self._now_ms = now_ms
            self._handlers[type(event)](event, now_ms)

    def ends_batch(self, event: Event) -> bool:
        if isinstance(event, Request):
            return isinstance(event.body, _QUORUM_REQUESTS)
        is_ours = isinstance(event, Answer) and event.token.owner == OWNER
        return is_ours and not isinstance(event, _QUIET)

    def settle(self, now_ms: int) -> None:
        """Count what is committed, then let the role do what is due."""
        self._now_ms = now_ms
        role = self.role
        if type(role) is Leader and not self._has_stopped:
            leading.advance_high_watermark(self.replica, role)
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
        if self._leaving_until_ms is None and len(self.replica.log.snapshots) < 2:
            return due  # no snapshot can go, so that nothing else is waited for
        return earliest(due, self._leaving_until_ms, self._compaction.deadline_ms(self.replica))

    def take_effects(self) -> list[Effect]:
        """Fetches parked at the log end get all that was appended since, in one answer."""
        role = self.role
        is_due = type(role) is Leader and (role.parked.waiting or role.watermark_due_ms)
        if type(role) is Leader and is_due and not self._has_stopped:
            serving.serve_parked(self.replica, role, self._now_ms)
        return self.replica.outbox.take()

    # --- roles --------------------------------------------------------------------------------

    def _become(self, role: Role, now_ms: int) -> None:
        """The only place that changes role."""
        previous = self.role
        assert isinstance(role, ALLOWED[type(previous)]), (previous, role)
        assert role.epoch >= previous.epoch, (previous.epoch, role.epoch)
        if role.epoch > EPOCH_MAX:
            self._stop(
                f"no epoch can follow {previous.epoch}, which is on the disks: reformat them"
            )
            return
        self.role = role
        self.replica.peers.reset()
        self._entered(name_of(previous), now_ms)
        if isinstance(previous, Leader):
            membership.abandon(self.replica, previous)
            refuse_snapshots(self.replica, previous, self.known())
            for token in serving.refuse_all(previous):
                refusal = fetch_response(self.known(), error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
                self.replica.outbox.send(Reply(token=token, body=refusal))

    def _entered(self, previous: str, now_ms: int) -> None:
        """Save the election first: all messages from now on speak of its epoch, vote or leader."""
        role = self.role
        self.leader = leader_and_epoch(role, self.node_id)
        self.leading_since = role.since if isinstance(role, Leader) else None
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
            self.replica.outbox.save(election, self.replica.kraft_version)
        if isinstance(role, Leader):
            leading.enter(self.replica, role, now_ms)

    def _poll(self, now_ms: int) -> None:
        """Let the role do what is due, then the role that it has become."""
        for _ in range(_TRANSITIONS_MAX):
            if self._has_stopped:
                return
            if self._leaving_until_ms is not None:
                self._leave(self._leaving_until_ms, now_ms)
                break
            role = next_role(self.replica, self.role, now_ms)
            if role is None:
                break
            self._become(role, now_ms)
        else:
            raise AssertionError(f"no end of transitions at {name_of(self.role)}")
        if self._compaction.due_ms <= now_ms:
            self._compaction.poll(self.replica, now_ms)  # what was to be read of the log has been

    def _leave(self, until_ms: int, now_ms: int) -> None:
        """Stop once the other voters know that we resigned, or cannot be told in time."""
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

    # --- events -------------------------------------------------------------------------------

    def _on_request(self, request: Request, now_ms: int) -> None:
        reply: object | None
        match request.body:
            case VoteRequest() | BeginQuorumEpochRequest() | EndQuorumEpochRequest() as body:
                judged = answering.judge(self.replica, self.role, body, now_ms)
                self._transition(judged.become, now_ms)
                reply = answering.reply(body, judged, self.known())
            case ApiVersionsRequest():
                reply = kraft_version.describe_versions()
            case _:
                reply = requests.answer(self.replica, self.role, request, self.known, now_ms)
        if reply is not None and not self._has_stopped:
            self.replica.outbox.send(Reply(token=request.token, body=reply))

    def _transition(self, become: Role | TwoLeaders | None, now_ms: int) -> None:
        match become:
            case None:
                pass
            case TwoLeaders():
                self._stop(str(become))
            case role:
                self._become(role, now_ms)

    def _on_response(self, response: Response, now_ms: int) -> None:
        token, body = response.token, response.body
        source = self.replica.peers.answered(token.number)
        if source is None:
            return
        if isinstance(body, ApiVersionsResponse):
            if isinstance(self.role, Leader):
                membership.versions_told(self.replica, self.role, token.number, body, now_ms)
        elif isinstance(body, ReportResponse):
            role = self.role
            self._learn_leader(reporting.common_fields(body), now_ms)
            if isinstance(role, Follower) and role is self.role:
                reporting.reported(self.replica, role, body)
        else:
            assert isinstance(body, PeerResponse), body
            self._on_answer(source, body, now_ms)

    def _on_answer(self, source: Endpoint, body: PeerResponse, now_ms: int) -> None:
        """Adopt the epoch and the leader that it names, then what it is the answer to."""
        role = self.role
        if type(body) is FetchResponse and type(role) is Follower:
            answer = news_of(body, leader_id=role.leader_id, epoch=role.epoch)
            if answer is not None:  # of the leader that we follow: nothing to adopt
                self._refusals.heard(source.node_id, ErrorCode.NONE)
                self._fetched(role, source, answer, now_ms)
                return
        told = common_fields(body, source)
        self._learn_leader(told, now_ms)
        if self._has_stopped:
            return
        if self._refusals.heard(source.node_id, told.error):
            self._note_refusal(source, told.error)
        is_accepted = told.error is ErrorCode.NONE and told.epoch == self.role.epoch
        if is_accepted:
            self._accepted(source, body, now_ms)
        else:
            self._refused(role, source, told.error, now_ms)

    def _learn_leader(self, told: CommonFields, now_ms: int) -> None:
        if told.error is not ErrorCode.UNKNOWN_LEADER_EPOCH:
            news = transitions.maybe_transition(self.replica, self.role, told, now_ms)
            self._transition(news, now_ms)

    def _refused(self, role: Role, source: Endpoint, error: ErrorCode, now_ms: int) -> None:
        """The answer is of no use. Unless it made us change role, ask again, but not soon."""
        if role is not self.role:
            return
        self.replica.peers.back_off(
            source.node_id, now_ms + self.replica.config.discovery_backoff_ms
        )
        if not isinstance(self.role, Follower):
            return
        if error in downloading.LEADER_LACKS_IT and self.role.snapshot_id is not None:
            downloading.abandon(self.replica, self.role, error.name, now_ms)
        else:
            following.fetch_failed(self.role, source)

    def _note_refusal(self, source: Endpoint, error: ErrorCode) -> None:
        self.replica.outbox.trace("refused", by=source.node_id, error=error.name)
        config = self.replica.config
        servers = self.replica.discovery_servers
        asked = self.replica.voters.ids or tuple(server.node_id for server in servers)
        if self._refusals.leave_no_majority(asked):
            self._stop(
                f"this node is of cluster {config.cluster_id}, but the controllers that it is "
                "given are of another: correct controller.quorum.voters, "
                "controller.quorum.bootstrap.servers or the directory"
            )

    def _accepted(self, source: Endpoint, body: PeerResponse, now_ms: int) -> None:
        match body, self.role:
            case VoteResponse(), Prospective() | Candidate() as role:
                vote = only_partition(body.topics)
                assert vote is not None, "checked by common_fields()"
                electing.record_vote(role, source.node_id, granted=vote.vote_granted)
            case EndQuorumEpochResponse(), Resigned() as role:
                role.unacknowledged.pop(source.node_id, None)
            case FetchResponse(), Follower() as role:
                answer = only_partition(body.responses)
                assert answer is not None, "checked by common_fields()"
                self._fetched(role, source, answer, now_ms)
            case FetchSnapshotResponse(), Follower() as role:
                piece = only_partition(body.topics)
                assert piece is not None, "checked by common_fields()"
                downloading.received(self.replica, role, piece, now_ms=now_ms)
            case FetchResponse(), Unattached():
                # The leader's own answer, but it is not known where it is: ask on.
                self._refused(self.role, source, ErrorCode.NONE, now_ms)
            case _:
                pass

    def _fetched(
        self, role: Follower, source: Endpoint, answer: FetchedPartition, now_ms: int
    ) -> None:
        reason = downloading.fetched(self.replica, role, answer, source=source, now_ms=now_ms)
        if reason is not None:
            self._stop(reason)

    def _on_no_answer(self, failed: RequestFailed, now_ms: int) -> None:
        token = failed.token
        source = self.replica.peers.answered(token.number)
        if source is None:
            return
        self.replica.peers.back_off(source.node_id, now_ms + self.replica.config.retry_backoff_ms)
        match self.role:
            case Prospective() as role:
                self._transition(
                    electing.not_asked(self.replica, role, failed.failure, now_ms), now_ms
                )
            case Follower(reporting=number) if number == token.number:
                reporting.reported(self.replica, self.role, None)
            case Follower():
                following.fetch_failed(self.role, source)
            case Leader():
                membership.versions_told(self.replica, self.role, token.number, None, now_ms)
            case Resigned() if self._leaving_until_ms is not None:
                # A voter that cannot be told at once will find out: a stop of all must not wait.
                self.role.unacknowledged.pop(source.node_id, None)
            case _:
                pass

    # --- the disk's answers -------------------------------------------------------------------

    def _on_stored(self, stored: Stored, _now_ms: int) -> None:
        self.replica.log.stored(stored.token.number)
        self.replica.outbox.stored(stored.token.number)

    def _on_read(self, done: ReadDone, _now_ms: int) -> None:
        if isinstance(self.role, Leader):
            serving.read_done(self.replica, self.role, done.token.number, done.records)

    def _on_snapshot_saved(self, saved: SnapshotSaved, now_ms: int) -> None:
        self._compaction.saved(self.replica, saved, now_ms)
        downloading.saved(self.replica, self.role, saved, now_ms)

    def _on_snapshot_read(self, read: SnapshotRead, now_ms: int) -> None:
        if isinstance(self.role, Leader):
            snapshot_read(self.replica, self.role, read, self.known())
        downloading.broken(self.replica, self.role, read, now_ms)

    def _on_trimmed(self, trimmed: Trimmed, now_ms: int) -> None:
        self._compaction.trimmed(self.replica, trimmed, now_ms)

    def storage_failed(self, failed: StorageFailed, _now_ms: int) -> None:
        """What this node promised may be lost, and what it holds is not known (KAFKA-14644)."""
        self._stop(f"cannot store {failed.log}: {failed.reason}")
