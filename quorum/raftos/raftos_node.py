"""RaftosNode: the metadata log of a controller, replicated by raftos in the place of our Raft.

raftos elects and replicates; here, what it has committed becomes a log in Kafka's format, which
brokers fetch as they do from `quorum.raft`. The local log holds committed records only, so it is
never cut off while the process runs, and all of it that is synced here may be shown. raftos' own
file is the truth: a process begins with an empty log and has raftos repeat every command.

    - the epoch of a record is the term of its entry in raftos' log;
    - who wins a term replicates a LeaderChange first, and leads once that is committed;
    - a command that is not where its leader said it would be shows that raftos took back what it
      had committed, or had two leaders in a term. The process stops and says so; the next one makes
      its log of what raftos has left, without that command.

No vote, no truncation, no snapshot: raftos has its own votes, keeps its log for ever, and its
members are its configuration. What that costs is in docs/engines.md.
"""

from random import Random

from quorum.core.application import State
from quorum.core.effects import (
    Effect,
    Event,
    LogState,
    ReadDone,
    Reply,
    Request,
    StorageFailed,
    Stored,
)
from quorum.core.storage import METADATA_LOG
from quorum.raft import requests, serving
from quorum.raft.config import QuorumConfig
from quorum.raft.log import QuorumLog
from quorum.raft.messages import fetch_response
from quorum.raft.raft_outbox import HoldingOutbox
from quorum.raft.replica import Replica
from quorum.raft.roles import Follower, Leader, Progress, Role, Unattached, leader_of, name_of
from quorum.raft.view import RaftView, leader_and_epoch
from quorum.raft.voter_history import VoterHistory
from quorum.raftos.commands import ANYWHERE, Command, Joining
from quorum.raftos.proposals import Proposals
from quorum.raftos.raftos_effects import (
    Broken,
    Committed,
    RaftosEvent,
    RaftosRequest,
    TermAndLeader,
)
from wire.batch import headers, placed
from wire.control_records import LeaderChange, LeaderChangeVoter, encode_control_batch
from wire.errors import ErrorCode
from wire.messages.quorum_epochs import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)

__all__ = ["RaftosNode"]

_NEVER_MS = 1 << 62  # raftos has its own clocks for what our roles have deadlines for


class RaftosNode(RaftView):
    """An `Engine`. After `Stop` it says and does nothing more."""

    def __init__(
        self, config: QuorumConfig, log_state: LogState, random: Random, now_ms: int
    ) -> None:
        """`log_state` is what an earlier process left, to be made anew."""
        self.replica = Replica(
            config=config,
            history=VoterHistory(config.voters, config.listener_name),
            log=QuorumLog(log_state),
            outbox=HoldingOutbox(METADATA_LOG),
            random=random,
        )
        if log_state.end_offset > 0:
            self.replica.truncate(0)
        self.role: Role = Unattached(epoch=0, election_deadline_ms=None)
        self.leader = leader_and_epoch(self.role, self.node_id)
        self.leading_since = None
        self._life = random.getrandbits(31)
        self._joining = Joining()
        self._proposals: Proposals | None = None  # while raftos says that this node leads
        self._number = 0
        self._requests: list[RaftosRequest] = []
        self._has_stopped = False
        self._now_ms = now_ms

    # --- MetadataLog --------------------------------------------------------------------------

    @property
    def end_offset(self) -> int:
        if isinstance(self.role, Leader):
            return self._leading.end_offset
        return self.replica.log.end_offset

    def append(self, batch: bytes, now_ms: int) -> int:
        assert isinstance(self.role, Leader), f"append as {name_of(self.role)}"
        self._now_ms = now_ms
        count = sum(header.last_offset_delta + 1 for _, header in headers(batch))
        end_offset = self._leading.promise(batch, count)
        self._propose()
        return end_offset - 1

    def resign(self, now_ms: int) -> None:
        if isinstance(self.role, Leader) and not self._has_stopped:
            self._requests.append(RaftosRequest(term=self.role.epoch, command=None))
            self._adopt(TermAndLeader(term=self.role.epoch, leader_id=None), now_ms)

    def raise_kraft_version(self, version: int, now_ms: int) -> str | None:
        if version == self.kraft_version:
            return None
        return "the voters of raftos are its configuration: kraft.version stays 0"

    @property
    def _leading(self) -> Proposals:
        assert self._proposals is not None, "raftos says that this node does not lead"
        return self._proposals

    # --- Engine -------------------------------------------------------------------------------

    @property
    def is_saving_snapshot(self) -> bool:
        return False

    def save_snapshot(self, state: State, *, last_timestamp_ms: int, now_ms: int) -> None:
        """Does nothing: raftos keeps every command, and repeats them all at the next start."""

    def shut_down(self, now_ms: int) -> None:
        """Nobody is told: raftos has no message for it. The others wait for their time-out."""
        self.replica.outbox.trace("shutdown", role=name_of(self.role))
        self.resign(now_ms)
        self._stop("shut down", exit_code=0)

    # --- Core ---------------------------------------------------------------------------------

    def receive(self, event: Event, now_ms: int) -> None:
        if self._has_stopped:
            return
        self._now_ms = now_ms
        match event:
            case Request():
                self._on_request(event, now_ms)
            case RaftosEvent(news=Committed() as news):
                self._on_committed(news, now_ms)
            case RaftosEvent(news=TermAndLeader() as news):
                self._adopt(news, now_ms)
            case RaftosEvent(news=Broken(reason=reason)):
                self._stop(reason)
            case Stored():
                self._on_stored(event)
            case ReadDone():
                if isinstance(self.role, Leader):
                    serving.read_done(self.replica, self.role, event.token.number, event.records)
            case StorageFailed():
                self._stop(f"cannot store {event.log}: {event.reason}")
            case _:
                raise AssertionError(f"not asked for: {event}")

    def ends_batch(self, event: Event) -> bool:
        return isinstance(event, RaftosEvent)

    def settle(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def deadline_ms(self) -> int | None:
        if self._has_stopped or not isinstance(self.role, Leader):
            return None
        return self.role.parked.due_ms

    def take_effects(self) -> list[Effect]:
        """Fetches parked at the log end get all that was committed since, in one answer."""
        if isinstance(self.role, Leader) and not self._has_stopped:
            serving.serve_parked(self.replica, self.role, self._now_ms)
        requests, self._requests = self._requests, []
        return [*self.replica.outbox.take(), *requests]

    # --- leading and following ----------------------------------------------------------------

    def _adopt(self, news: TermAndLeader, now_ms: int) -> None:
        """What raftos says of its term and leader, as one of our roles."""
        if news.term < self.role.epoch:
            self._stop(
                f"raftos went back from term {self.role.epoch} to {news.term}: it has lost the "
                "file in which it keeps it. Start the node again"
            )
            return
        known = leader_of(self.role, self.node_id) if self._proposals is None else self.node_id
        if (self.role.epoch, known) == (news.term, news.leader_id):
            return  # known, since this node resigned by itself
        self._proposals = None
        self._become(self._role_of(news), is_candidate=news.is_candidate)
        if news.leader_id == self.node_id:
            self._begin_term(news.term, now_ms)

    def _role_of(self, news: TermAndLeader) -> Role:
        """Not `Leader`: who has won a term has to commit something in it first."""
        others = self.replica.voters.others(self.node_id)
        for voter in others:
            if voter.key.id == news.leader_id:
                return Follower(
                    epoch=news.term,
                    leader_id=news.leader_id,
                    leader_endpoint=voter.endpoint,
                    fetch_deadline_ms=_NEVER_MS,
                )
        return Unattached(epoch=news.term, election_deadline_ms=None)

    def _become(self, role: Role, *, is_candidate: bool = False) -> None:
        """`is_candidate`: raftos asks for votes, and says nothing that our `Candidate` needs."""
        previous, self.role = self.role, role
        self.leader = leader_and_epoch(role, self.node_id)
        self.leading_since = role.since if isinstance(role, Leader) else None
        if isinstance(previous, Leader):
            for token in serving.refuse_all(previous):
                refusal = fetch_response(self.known(), error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
                self.replica.outbox.send(Reply(token=token, body=refusal))
        self.replica.outbox.trace(
            "role",
            role="candidate" if is_candidate else name_of(role),
            epoch=role.epoch,
            leader=leader_of(role, self.node_id),
            node=self.node_id,
            previous=name_of(previous),
        )

    def _begin_term(self, term: int, now_ms: int) -> None:
        """raftos commits nothing of earlier terms before something of its own: a LeaderChange."""
        self._proposals = Proposals(
            node_id=self.node_id, life=self._life, term=term, number=self._number
        )
        change = LeaderChange(
            leader_id=self.node_id,
            voters=tuple(LeaderChangeVoter(voter_id=voter_id) for voter_id in self.voter_ids),
            granting_voters=(LeaderChangeVoter(voter_id=self.node_id),),  # raftos names no others
        )
        self._proposals.begin(encode_control_batch([change], timestamp_ms=now_ms))
        self._propose()

    def _lead(self, term: int, epoch_start_offset: int) -> None:
        self._leading.end_offset = self.replica.log.end_offset
        others = self.replica.voters.others(self.node_id)
        self._become(
            Leader(
                epoch=term,
                voted=self.replica.key,
                epoch_start_offset=epoch_start_offset,
                granting=(self.replica.key,),
                progress={voter.key.id: Progress(key=voter.key) for voter in others},
                check_quorum_deadline_ms=_NEVER_MS,
                begin_epoch_due_ms=_NEVER_MS,
                updated_voters=self.replica.voters,
            )
        )

    def _propose(self) -> None:
        proposals = self._proposals
        if proposals is None:
            return
        command = proposals.next()
        self._number = proposals.number
        if command is not None:
            self._requests.append(RaftosRequest(term=proposals.term, command=command))

    # --- what raftos has committed ------------------------------------------------------------

    def _on_committed(self, news: Committed, now_ms: int) -> None:
        command = news.command
        start_offset = self.replica.log.end_offset
        problem = self._take(news)
        if problem is not None:
            self._stop(problem)
            return
        if self._proposals is None or not self._proposals.committed(command):
            return
        assert news.term == self._proposals.term, (news.term, self._proposals.term)
        if not isinstance(self.role, Leader):
            self._lead(news.term, start_offset)
        self._propose()

    def _take(self, news: Committed) -> str | None:
        """Put whole batches at the end of the local log; why that cannot be, if it cannot."""
        whole = self._joining.take(news.command)
        log = self.replica.log
        if whole is None or not whole.records:
            return None
        if whole.base_offset not in (ANYWHERE, log.end_offset) or news.term < log.last_epoch:
            if news.is_replayed:
                self.replica.outbox.trace("left_out", **_place(whole, news.term))
                return None
            return (
                f"raftos committed records of node {whole.proposer} in term {news.term} that "
                f"belong to offset {whole.base_offset}, but the log ends at {log.end_offset}, "
                f"epoch {log.last_epoch}: it took back what it had committed, or two nodes led "
                "one term. Started again, the node makes its log anew of what raftos has left"
            )
        records, found = placed(whole.records, base_offset=log.end_offset, leader_epoch=news.term)
        log.append(records, found, syncing=self.replica.append(records))
        return None

    def _on_stored(self, stored: Stored) -> None:
        """All that is here is committed; what is synced here may be shown."""
        replica, role = self.replica, self.role
        replica.log.stored(stored.token.number)
        replica.outbox.stored(stored.token.number)
        if replica.log.end_offset > 0:
            replica.log.advance_high_watermark(replica.log.synced_offset)
        if isinstance(role, Leader) and replica.log.synced_offset > role.epoch_start_offset:
            role.high_watermark = replica.log.synced_offset

    def _stop(self, reason: str, exit_code: int = 1) -> None:
        self._has_stopped = True
        self.replica.outbox.stop(reason, exit_code)

    # --- requests -----------------------------------------------------------------------------

    def _on_request(self, request: Request, now_ms: int) -> None:
        reply: object | None
        match request.body:
            case VoteRequest():
                reply = VoteResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, topics=())
            case BeginQuorumEpochRequest():
                reply = BeginQuorumEpochResponse(
                    error_code=ErrorCode.UNSUPPORTED_VERSION, topics=()
                )
            case EndQuorumEpochRequest():
                reply = EndQuorumEpochResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, topics=())
            case _:
                reply = requests.answer(self.replica, self.role, request, self.known, now_ms)
        if reply is not None:
            self.replica.outbox.send(Reply(token=request.token, body=reply))


def _place(command: Command, term: int) -> dict[str, int]:
    return {"proposer": command.proposer, "term": term, "offset": command.base_offset}
