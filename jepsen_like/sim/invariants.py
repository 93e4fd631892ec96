"""What must hold after every event of a simulated quorum, whatever was injected.

The ids are those of docs/simulation.md. R-UE and R-LM are seen where batches are written
(`jepsen_like.sim.logtree`); all others here, each from ground truth: what lies durably on disks
and what leaves a node, not what nodes believe of each other. Every check looks only at the node
that the event touched and at what changed, so that its cost does not grow with the run.

Snapshots (R-SS) and voter changes (R-MC) do not exist yet.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Protocol

from jepsen_like.sim.content import Content
from jepsen_like.sim.host import Host
from jepsen_like.sim.logtree import Entry
from jepsen_like.sim.messages import fetching_voter
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world import World
from quorum.effects import Effect, Event, Request, Send, Truncate
from quorum.storage import METADATA_LOG
from quorum.types import ElectionState, LeaderAndEpoch
from wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from wire.messages.vote import VoteRequest, VoteResponse

__all__ = ["Invariants", "Replica"]


class Replica(Protocol):
    """What is looked at of a running core."""

    @property
    def leader(self) -> LeaderAndEpoch: ...

    @property
    def high_watermark(self) -> int | None: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def leads(self) -> bool:
        """Is it leader, and not resigned?"""
        ...

    @property
    def hears_leader(self) -> bool:
        """Does it follow, and has it fetched from the leader whom it follows?"""
        ...

    @property
    def role_name(self) -> str: ...


@dataclass(slots=True)
class _Seen:
    """What was last seen of one process of a node."""

    leader: LeaderAndEpoch
    leads: bool = False
    high_watermark: int = -1  # -1: unknown
    refusing: set[int] = field(default_factory=set)  # requests for a pre-vote that must be refused
    applied: int = 0  # batches that its application was given
    leads_since_us: int = 0
    heard_us: dict[int, int] = field(default_factory=dict)  # by voter: its last Fetch


class Invariants:
    """Watches all hosts of one quorum; raises `Violation`."""

    def __init__(self, *, world: World, voters: tuple[int, ...], check_quorum_us: int) -> None:
        self.committed: list[Entry] = []  # the one history
        self.elections = 0
        self._world = world
        self._voters = voters
        self._majority = len(voters) // 2 + 1
        self._check_quorum_us = check_quorum_us  # how long a leader may go on unheard
        self._hosts: dict[int, Host] = {}
        self._replicas: dict[int, Replica] = {}
        self._seen: dict[int, _Seen] = {}
        self._leaders: dict[int, int] = {}  # by epoch
        self._votes: dict[tuple[int, int], int] = {}  # by (voter, epoch): the candidate
        self._persisted: dict[int, int] = {}  # by node: the highest epoch on its disk
        self._high_watermarks: dict[int, int] = {}  # by epoch: its leader's highest

    @property
    def committed_offset(self) -> int:
        return self.committed[-1].next_offset if self.committed else 0

    # --- a process begins ---------------------------------------------------------------

    def started(self, host: Host, replica: Replica) -> None:
        """A new process; its core has recovered and emitted nothing yet."""
        node = host.node_id
        self._hosts[node] = host
        self._replicas[node] = replica
        self._seen[node] = _Seen(leader=replica.leader)
        persisted = self._persisted.get(node, 0)
        if replica.leader.epoch < persisted:
            raise Violation(
                "R-EM", f"node {node} restarts in epoch {replica.leader.epoch} < {persisted}"
            )
        if replica.leads and replica.leader.epoch <= persisted:
            raise Violation(
                "R-UE", f"node {node} resumes as leader of epoch {replica.leader.epoch}"
            )

    def saved(self, node: int, election: ElectionState) -> None:
        """quorum-state is on the medium."""
        before = self._persisted.get(node, 0)
        if election.epoch < before:
            raise Violation("R-EM", f"node {node} persists epoch {election.epoch} after {before}")
        self._persisted[node] = election.epoch
        if election.leader_id is not None:
            self._one_leader(election.epoch, election.leader_id)

    # --- Watch --------------------------------------------------------------------------

    def received(self, host: Host, event: Event) -> None:
        seen = self._seen[host.node_id]
        match event:
            case Request(token=number, body=VoteRequest() as request):
                self._is_asked_to_vote(host, number, request)
            case Request(body=body):
                voter = fetching_voter(body)
                if voter in self._voters:
                    seen.heard_us[voter] = self._world.now_us
            case _:
                pass

    def performing(self, host: Host, effect: Effect) -> None:
        match effect:
            case Truncate(log=log, end_offset=end_offset) if log == METADATA_LOG:
                self._truncates(host, end_offset)
            case Send(body=BeginQuorumEpochRequest() as begins):
                self._announces(host, begins.topics[0].partitions[0].leader_epoch)
            case Send(body=VoteRequest() as request):
                partition = request.topics[0].partitions[0]
                if not partition.pre_vote:
                    self._votes_for(host, partition.replica_epoch, host.node_id)
            case _:
                pass

    def replying(self, host: Host, token: int, request: object, response: object) -> None:
        if not isinstance(request, VoteRequest) or not isinstance(response, VoteResponse):
            return
        if not response.topics or not response.topics[0].partitions[0].vote_granted:
            return
        asked = request.topics[0].partitions[0]
        if asked.pre_vote:
            if token in self._seen[host.node_id].refusing:
                raise Violation("R-PV", f"node {host.node_id} grants a pre-vote though it follows")
        else:
            self._votes_for(host, asked.replica_epoch, asked.replica_id)

    def settled(self, host: Host, effects: list[Effect]) -> None:
        replica = self._replicas[host.node_id]
        seen = self._seen[host.node_id]
        led_epoch = seen.leader.epoch if seen.leads else None
        leader = replica.leader
        if leader != seen.leader:
            self._leader_changes(host, seen, leader)
        if replica.leads is not seen.leads:
            self._leadership_changes(host, seen, replica.leads)
        high_watermark = replica.high_watermark
        if high_watermark is not None and high_watermark != seen.high_watermark:
            self._high_watermark_changes(host, seen, high_watermark, led_epoch)
        if seen.leads:
            self._hears_majority(host, seen)
        end_offset = _written(host).end_offset
        if replica.end_offset != end_offset and not host.disk.log(METADATA_LOG).failed:
            raise Violation(
                "R-LM", f"node {host.node_id} ends at {replica.end_offset}, its log at {end_offset}"
            )

    # --- leaders and votes --------------------------------------------------------------

    def _leader_changes(self, host: Host, seen: _Seen, leader: LeaderAndEpoch) -> None:
        node = host.node_id
        if leader.epoch < seen.leader.epoch:
            raise Violation("R-EM", f"node {node} falls from {seen.leader} to {leader}")
        if leader.leader_id is not None:
            self._one_leader(leader.epoch, leader.leader_id)
        seen.leader = leader

    def _one_leader(self, epoch: int, leader_id: int) -> None:
        known = self._leaders.setdefault(epoch, leader_id)
        if known != leader_id:
            raise Violation("R-ES", f"epoch {epoch} has leaders {sorted((known, leader_id))}")

    def _leadership_changes(self, host: Host, seen: _Seen, leads: bool) -> None:
        seen.leads = leads
        if not leads:
            return
        self.elections += 1
        seen.leads_since_us = self._world.now_us
        seen.heard_us.clear()
        seen.high_watermark = -1
        self._holds_committed(host)

    def _holds_committed(self, host: Host) -> None:
        """R-LC: whoever leads holds everything that earlier epochs committed."""
        epoch = self._seen[host.node_id].leader.epoch
        earlier = [offset for other, offset in self._high_watermarks.items() if other < epoch]
        if not earlier:
            return
        index = bisect_right(self.committed, max(earlier), key=lambda entry: entry.next_offset) - 1
        last = self.committed[index]
        if not _written(host).holds(last):
            raise Violation("R-LC", f"node {host.node_id} leads epoch {epoch} without {last}")

    def _votes_for(self, host: Host, epoch: int, candidate: int) -> None:
        node = host.node_id
        known = self._votes.setdefault((node, epoch), candidate)
        if known != candidate:
            raise Violation(
                "R-1V", f"node {node} votes for {known} and {candidate} in epoch {epoch}"
            )
        durable = host.disk.log(METADATA_LOG).election
        if durable.epoch > epoch:
            return  # it may have moved on before this answer left: it cannot vote in `epoch` again
        if durable.epoch < epoch or durable.voted is None or durable.voted.id != candidate:
            raise Violation(
                "R-VD",
                f"node {node} votes for {candidate} in epoch {epoch}, its disk has {durable}",
            )

    def _announces(self, host: Host, epoch: int) -> None:
        """R-VD holds for leading, too: else a crash makes it a candidate of its own epoch."""
        durable = host.disk.log(METADATA_LOG).election
        if durable.epoch < epoch or (durable.epoch == epoch and durable.leader_id != host.node_id):
            raise Violation(
                "R-VD", f"node {host.node_id} announces epoch {epoch}, its disk has {durable}"
            )

    def _is_asked_to_vote(self, host: Host, token: int, request: VoteRequest) -> None:
        """R-PV is about the moment of asking: the answer may have to wait for the disk."""
        seen = self._seen[host.node_id]
        replica = self._replicas[host.node_id]
        asked = request.topics[0].partitions[0]
        if asked.pre_vote and asked.replica_epoch == replica.leader.epoch and replica.hears_leader:
            seen.refusing.add(token)

    def _hears_majority(self, host: Host, seen: _Seen) -> None:
        """R-CQ: a leader that heard no majority for long enough resigns."""
        needed = self._majority - 1 if host.node_id in self._voters else self._majority
        if needed == 0:
            return
        since_us = max(seen.leads_since_us, host.resumed_us)
        if self._world.now_us - since_us <= self._check_quorum_us:
            return
        heard_us = sorted(
            (at_us for voter, at_us in seen.heard_us.items() if voter != host.node_id), reverse=True
        )
        last_us = heard_us[needed - 1] if len(heard_us) >= needed else seen.leads_since_us
        if self._world.now_us - max(last_us, host.resumed_us) > self._check_quorum_us:
            raise Violation("R-CQ", f"node {host.node_id} still leads {seen.leader.epoch}, unheard")

    # --- the log ------------------------------------------------------------------------

    def _truncates(self, host: Host, end_offset: int) -> None:
        """R-NT: not below the own high watermark, and a majority goes on to hold what is committed.

        Who still follows the leader of an earlier epoch may truncate what a later one has
        committed meanwhile: it was not counted for that, and will be given it again.
        """
        node = host.node_id
        known = self._replicas[node].high_watermark
        if known is not None and end_offset < known:
            raise Violation("R-NT", f"node {node} truncates to {end_offset} below {known}")
        written = _written(host)
        first = written.index_of(end_offset)
        if node not in self._voters or first >= min(len(written.entries), len(self.committed)):
            return
        entry = written.entries[first]
        if entry is self.committed[first]:
            others = [voter for voter in self._holders(entry) if voter != node]
            if len(others) < self._majority:
                raise Violation("R-NT", f"node {node} truncates {entry}, which leaves {others}")

    def _high_watermark_changes(
        self, host: Host, seen: _Seen, high_watermark: int, led_epoch: int | None
    ) -> None:
        """`led_epoch`: the one that it led when the event came, which may have ended with it."""
        node = host.node_id
        if high_watermark < seen.high_watermark:
            raise Violation("R-HW", f"node {node}: {seen.high_watermark} falls to {high_watermark}")
        seen.high_watermark = high_watermark
        written = _written(host)
        if high_watermark > written.end_offset:
            raise Violation(
                "R-HW", f"node {node}: {high_watermark} above its end {written.end_offset}"
            )
        if seen.leads:
            self._commits(host, seen.leader.epoch, high_watermark)
        elif led_epoch is not None and high_watermark > self.committed_offset:
            self._commits(host, led_epoch, high_watermark)
        elif high_watermark > self.committed_offset:
            raise Violation("R-HW", f"node {node}: {high_watermark} above {self.committed_offset}")
        if high_watermark:
            self._is_committed_prefix(host, high_watermark)

    def _is_committed_prefix(self, host: Host, high_watermark: int) -> None:
        written = _written(host)
        last = written.entries[written.index_of(high_watermark - 1)]
        if last.index >= len(self.committed) or self.committed[last.index] is not last:
            raise Violation(
                "R-HW", f"node {host.node_id} has {last} below {high_watermark}: not committed"
            )

    def _commits(self, host: Host, epoch: int, high_watermark: int) -> None:
        """The leader of `epoch` says that everything below is committed."""
        self._high_watermark_is_monotone(epoch, high_watermark)
        if high_watermark == 0:
            return
        written = _written(host)
        last = written.entries[written.index_of(high_watermark - 1)]
        if last.epoch != epoch:
            raise Violation("R-HW", f"epoch {epoch} commits {last} by counting (thesis 3.6.2)")
        holders = self._holders(last)
        if len(holders) < self._majority:
            raise Violation("R-HW", f"epoch {epoch} commits {last}, durable only on {holders}")
        if last.index < len(self.committed):
            return
        self._holds_committed(host)
        self.committed += written.entries[len(self.committed) : last.index + 1]
        for node, seen in self._seen.items():
            if seen.leads and seen.leader.epoch > epoch and self._hosts[node].is_up:
                self._holds_committed(self._hosts[node])

    def _high_watermark_is_monotone(self, epoch: int, high_watermark: int) -> None:
        for other, offset in self._high_watermarks.items():
            if (other < epoch and offset > high_watermark) or (
                other > epoch and offset < high_watermark
            ):
                raise Violation(
                    "R-HW", f"epoch {epoch} commits to {high_watermark}, epoch {other} to {offset}"
                )
        self._high_watermarks[epoch] = high_watermark

    def _holders(self, entry: Entry) -> list[int]:
        """The voters on whose disks `entry` is durable."""
        return [
            voter
            for voter in self._voters
            if voter in self._hosts
            and self._hosts[voter].disk.log(METADATA_LOG).durable.holds(entry)
        ]

    def applies(self, host: Host, batches: bytes, next_offset: int) -> None:
        """R-SM: every application is given the one history, each batch once and in order."""
        seen = self._seen[host.node_id]
        position = 0
        while position < len(batches):
            if seen.applied >= len(self.committed):
                raise Violation(
                    "R-SM", f"node {host.node_id} applies beyond {self.committed_offset}"
                )
            entry = self.committed[seen.applied]
            if batches[position : position + len(entry.records)] != entry.records:
                raise Violation("R-SM", f"node {host.node_id} applies something else than {entry}")
            position += len(entry.records)
            seen.applied += 1
        applied_offset = self.committed[seen.applied - 1].next_offset if seen.applied else 0
        if applied_offset != next_offset:
            raise Violation(
                "R-SM", f"node {host.node_id} is told {next_offset}, not {applied_offset}"
            )


def _written(host: Host) -> Content:
    return host.disk.log(METADATA_LOG).written
