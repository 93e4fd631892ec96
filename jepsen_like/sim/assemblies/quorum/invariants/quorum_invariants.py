"""Invariants of a simulated quorum, checked after every event, whatever was injected.

The ids are those of docs/simulation.md. This file decides which rule looks at which event;
the rules are in `election_invariants`, `log_invariants`, `quorum_view` and `logtree`. Every
check looks only at the node that the event touched and at what changed, so that its cost does not
grow with the run.
"""

from dataclasses import dataclass, field

from jepsen_like.sim.assemblies.quorum.invariants.election_invariants import (
    BackoffInvariants,
    ElectionInvariants,
    Heard,
)
from jepsen_like.sim.assemblies.quorum.invariants.log_invariants import (
    LogInvariants,
    SaysState,
    says_digest,
)
from jepsen_like.sim.assemblies.quorum.quorum_view import Follower, QuorumView, key_of
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.logs.logtree import Entry, Voters
from jepsen_like.sim.logs.running_replica import RunningReplica
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer, ReplicaOf
from quorum.core.effects import (
    Effect,
    Event,
    Failure,
    ReceiveSnapshot,
    Request,
    RequestFailed,
    ResetLog,
    SaveElection,
    SaveSnapshot,
    Send,
    SnapshotSaved,
    Trim,
    Truncate,
)
from quorum.core.storage import METADATA_LOG
from quorum.core.types import ElectionState, LeaderAndEpoch, OffsetAndEpoch, ReplicaKey
from quorum.raft.roles import Candidate, Role
from quorum.raft.roles import Follower as FollowerRole
from quorum.raft.voter_history import Membership
from wire.messages.fetching import FetchRequest, FetchSnapshotRequest, ReplicaState
from wire.messages.quorum_epochs import BeginQuorumEpochRequest, VoteRequest, VoteResponse

__all__ = ["Invariants"]


@dataclass(slots=True)
class _Seen:
    """What was last seen of one process of a node."""

    leader: LeaderAndEpoch
    follower: Follower  # its application
    role: Role | None = None
    leads: bool = False
    hears: int | None = None  # the epoch whose leader it is or has heard
    high_watermark: int = -1  # -1: unknown
    refusing: set[int] = field(default_factory=set)  # requests for a pre-vote that must be refused
    heard: Heard = field(default_factory=Heard)
    last: Entry | None = None  # of its log when last looked at
    stands: bool = False  # it saves a vote for itself, in a new epoch
    in_force: list[Membership] = field(default_factory=list)  # one after the other, in this turn
    saves: list[OffsetAndEpoch] = field(default_factory=list)  # snapshots, in this turn


class Invariants(Observer):
    """Watches all hosts of one quorum; raises `Violation`."""

    received_kinds = (
        VoteRequest,
        FetchRequest,
        FetchSnapshotRequest,
        RequestFailed,
        SnapshotSaved,
    )
    performing_kinds = (
        BeginQuorumEpochRequest,
        VoteRequest,
        SaveElection,
        Truncate,
        ResetLog,
        Trim,
        SaveSnapshot,
        ReceiveSnapshot,
    )

    def __init__(
        self,
        *,
        world: VirtualTime,
        voters: Voters,
        check_quorum_us: int,
        backoff_max_ms: int,
        replica_of: ReplicaOf,
        says_state: SaysState = says_digest,
    ) -> None:
        """`voters` vote until the log names others; `says_state` knows what snapshots hold."""
        self.view = QuorumView(voters)
        self.elections = 0
        self._world = world
        self._log = LogInvariants(self.view, says_state)
        self._election = ElectionInvariants(self.view, world, check_quorum_us)
        self._backoff = BackoffInvariants(backoff_max_ms)
        self._replica_of = replica_of
        self._replicas: dict[int, RunningReplica] = {}
        self._seen: dict[int, _Seen] = {}

    @property
    def committed(self) -> list[Entry]:
        return self.view.history.entries

    @property
    def committed_offset(self) -> int:
        return self.view.history.end_offset

    # --- Observer -----------------------------------------------------------------------

    def started(self, host: Host) -> None:
        node, replica = host.node_id, self._replica_of(host)
        self.view.hosts[node] = host
        self._replicas[node] = replica
        self._seen[node] = _Seen(leader=replica.leader, follower=Follower(self.view.history, node))
        self._election.started(host, replica.leader, leads=replica.leads)
        self._backoff.started(host)

    def saved(self, host: Host, election: ElectionState) -> None:
        self._election.saved(host, election)

    def received(self, host: Host, event: Event) -> None:
        match event:
            case Request(token=number, body=VoteRequest() as request):
                self._is_asked_to_vote(host, number, request)
            case (
                Request(body=FetchRequest(replica_state=ReplicaState(replica_id=voter)))
                | Request(body=FetchSnapshotRequest(replica_id=voter))
            ) if voter >= 0:  # it asks for what only a leader gives
                self._seen[host.node_id].heard.at_us[voter] = self._world.now_us
            case RequestFailed(failure=Failure.UNSUPPORTED_VERSION):
                self._election.cannot_ask(host.node_id)
            case SnapshotSaved(log=log, file=file) if log == METADATA_LOG:
                self._log.saved_snapshot(host, file.id)

    def performing(self, host: Host, effect: Effect) -> None:
        match effect:
            case Send(body=BeginQuorumEpochRequest() as begins):
                epoch = begins.topics[0].partitions[0].leader_epoch
                self._election.announces(host, epoch)
            case Send(body=VoteRequest() as request):
                asks = request.topics[0].partitions[0]
                if not asks.pre_vote:
                    self._election.votes(host, asks.replica_epoch, key_of(host))
            case SaveElection(election=ElectionState(epoch=epoch, voted=voted)):
                seen = self._seen[host.node_id]
                is_own = voted is not None and voted.id == host.node_id
                seen.stands = is_own and epoch > seen.leader.epoch
            case Truncate() | ResetLog() | Trim() if effect.log == METADATA_LOG:
                self._takes_back(host, effect)
            case SaveSnapshot(id=end) | ReceiveSnapshot(id=end):
                self._seen[host.node_id].saves.append(end)

    def _takes_back(self, host: Host, effect: Truncate | ResetLog | Trim) -> None:
        known = self._replicas[host.node_id].high_watermark
        match effect:
            case Truncate(end_offset=end_offset):
                self._log.truncates(host, end_offset, known)
            case ResetLog(start=start):
                if self._seen[host.node_id].leads:
                    raise Violation("R-SS", f"node {host.node_id} begins anew while it leads")
                self._log.begins_anew(host, start, known)
            case Trim(start_offset=start_offset):
                self._log.trims(host, start_offset)

    def replying(self, host: Host, token: int, request: object, response: object) -> None:
        if not isinstance(request, VoteRequest) or not isinstance(response, VoteResponse):
            return
        if not response.topics or not response.topics[0].partitions[0].vote_granted:
            return
        asked = request.topics[0].partitions[0]
        self._election.is_meant(host, ReplicaKey(host.node_id, asked.voter_directory_id))
        if asked.pre_vote:
            if token in self._seen[host.node_id].refusing:
                raise Violation("R-PV", f"node {host.node_id} grants a pre-vote though it follows")
        else:
            candidate = ReplicaKey(asked.replica_id, asked.replica_directory_id)
            self._election.votes(host, asked.replica_epoch, candidate)

    def counted(self, host: Host) -> None:
        """A leader counts by the voters of that moment: its turn may go on to other voters.

        What it says of that leaves in this turn, whether a sync fails in it or the node stops.
        """
        seen, replica = self._seen[host.node_id], self._replicas[host.node_id]
        seen.in_force.append(replica.raft.replica.history.latest)
        if seen.leads and (replica.high_watermark or 0) > self.committed_offset:
            self._look_at_the_high_watermark(host, replica, seen)

    def settled(self, host: Host, effects: list[Effect]) -> None:
        replica = self._replicas[host.node_id]
        seen = self._seen[host.node_id]
        raft = replica.raft
        role = raft.role
        has_new_role = role is not seen.role
        if has_new_role:
            self._backoff.changes(host, seen.role, role)
            self._role_changes(host, replica, seen)
        if type(role) is Candidate:
            self._backoff.waits(host, role)
        if seen.stands:
            seen.stands = False
            if replica.role_name in ("candidate", "leader"):
                self._election.stands(host)
        hears = seen.leads or (type(role) is FollowerRole and role.has_fetched)
        epoch = seen.leader.epoch if hears else None
        if epoch != seen.hears:
            seen.hears = epoch
            self._election.hears_leader(host.node_id, epoch)
        if has_new_role:
            self._election.asks(host.node_id, asks=replica.role_name == "prospective")
        seen.in_force = [raft.replica.history.latest]
        log = host.disk.log(METADATA_LOG)
        if log.failed:
            return  # the core will hear of it and stop
        self._look_at_the_high_watermark(host, replica, seen)
        self._look_at_the_log(host, replica, seen, log.written)

    def _look_at_the_high_watermark(self, host: Host, replica: RunningReplica, seen: _Seen) -> None:
        high_watermark = replica.raft.high_watermark
        if high_watermark is not None and high_watermark != seen.high_watermark:
            self._high_watermark_changes(host, seen, high_watermark)

    def _look_at_the_log(
        self, host: Host, replica: RunningReplica, seen: _Seen, written: Content
    ) -> None:
        seen.follower.check()
        while seen.saves:
            self._log.saves_snapshot(host, seen.saves.pop())
        last = written.last
        if seen.leads:
            if seen.last is not last:
                self._log.appends(host, seen.leader.epoch, seen.last)
            voters = self.view.voters_at(last)
            self._election.hears_majority(host, seen.leader.epoch, seen.heard, voters)
        if seen.last is not last:
            seen.last = last
            self._log.knows_voters(host, replica.voters)
        end_offset = written.end_offset
        if (known := replica.raft.replica.log.end_offset) != end_offset:
            raise Violation("R-LM", f"node {host.node_id} ends at {known}, its log at {end_offset}")

    # --- leaders ------------------------------------------------------------------------

    def _role_changes(self, host: Host, replica: RunningReplica, seen: _Seen) -> None:
        seen.role = replica.role
        before, seen.leader = seen.leader, replica.leader
        self._election.changes(host, before, seen.leader)
        if replica.leads is not seen.leads:
            self._leadership_changes(host, seen, replica.leads)

    def _leadership_changes(self, host: Host, seen: _Seen, leads: bool) -> None:
        seen.leads = leads
        if leads:
            self.elections += 1
            seen.heard = Heard(since_us=self._world.now_us, voters=self.view.voters_of(host))
            seen.high_watermark = -1
            self._log.holds_committed(host, seen.leader.epoch)

    def _is_asked_to_vote(self, host: Host, token: int, request: VoteRequest) -> None:
        """R-PV is about the moment of asking: the answer may have to wait for the disk."""
        replica = self._replicas[host.node_id]
        asked = request.topics[0].partitions[0]
        if asked.pre_vote and not replica.hears_leader:
            self._seen[host.node_id].hears = None  # later in the turn it may again
            self._election.hears_leader(host.node_id, None)
        elif asked.pre_vote and asked.replica_epoch == replica.leader.epoch:
            self._seen[host.node_id].refusing.add(token)

    # --- the log ------------------------------------------------------------------------

    def _high_watermark_changes(self, host: Host, seen: _Seen, high_watermark: int) -> None:
        node = host.node_id
        if high_watermark < seen.high_watermark:
            raise Violation("R-HW", f"node {node}: {seen.high_watermark} falls to {high_watermark}")
        seen.high_watermark = high_watermark
        if seen.leads:
            self._commits(host, seen.leader.epoch, high_watermark)
        elif high_watermark > self.committed_offset:
            raise Violation("R-HW", f"node {node}: {high_watermark} above {self.committed_offset}")
        if high_watermark:
            self._log.is_committed_prefix(host, high_watermark)

    def _commits(self, host: Host, epoch: int, high_watermark: int) -> None:
        in_force = [membership.voters.keys for membership in self._seen[host.node_id].in_force]
        if not self._log.commits(host, epoch, high_watermark, in_force):
            return
        for node, seen in self._seen.items():
            if seen.leads and seen.leader.epoch > epoch and self.view.hosts[node].is_up:
                self._log.holds_committed(self.view.hosts[node], seen.leader.epoch)

    # --- applications -------------------------------------------------------------------

    def applies(self, host: Host, batches: bytes, next_offset: int) -> None:
        self._seen[host.node_id].follower.applies(batches, next_offset)

    def answers_read(self, host: Host, asked_offset: int, applied_offset: int) -> None:
        """R-RI: nothing is missing of what was committed anywhere when the read was asked for."""
        if applied_offset < asked_offset:
            epoch = self._replicas[host.node_id].leader.epoch
            raise Violation(
                "R-RI",
                f"node {host.node_id} in epoch {epoch} answers with what ends at"
                f" {applied_offset}: {asked_offset} was committed when it was asked",
            )

    def loads(self, host: Host, end: OffsetAndEpoch, digest: bytes) -> None:
        self._seen[host.node_id].follower.loads(end, digest)
