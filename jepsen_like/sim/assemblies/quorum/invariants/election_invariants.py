"""Invariants of votes, epochs and leaders: R-ES, R-EM, R-VD, R-1V, R-PV, R-CQ, L-BO.

From what lies durably on disks and what leaves a node, not from what nodes believe of each other.
A replica is a node with a disk: a node that has lost its disk is another replica.
"""

from dataclasses import dataclass, field
from uuid import UUID

from jepsen_like.sim.assemblies.quorum.quorum_view import QuorumView, key_of, names
from jepsen_like.sim.logs.logtree import Voters
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from quorum.core.storage import METADATA_LOG
from quorum.core.types import ElectionState, LeaderAndEpoch, ReplicaKey
from quorum.raft.roles import Candidate, Prospective, Role
from quorum.raft.voters import majority_count
from wire.primitives import ZERO_UUID, uuid_text

__all__ = ["BackoffInvariants", "ElectionInvariants", "Heard"]


Disk = tuple[int, UUID]  # node and directory


@dataclass(slots=True)
class Heard:
    """Whom a leader has heard of since it leads, or since the voters changed."""

    since_us: int = 0
    voters: Voters = ()
    at_us: dict[int, int] = field(default_factory=dict)  # by voter: its last Fetch


class ElectionInvariants:
    def __init__(self, view: QuorumView, world: VirtualTime, check_quorum_us: int) -> None:
        self._view = view
        self._world = world
        self._check_quorum_us = check_quorum_us  # how long a leader may go on unheard
        self._leaders: dict[int, int] = {}  # by epoch
        self._votes: dict[tuple[Disk, int], ReplicaKey] = {}  # by (voter, epoch): the candidate
        self._persisted: dict[Disk, int] = {}  # the highest epoch on it
        self._hears: dict[int, tuple[int, int]] = {}  # by node: which epoch's leader, since when
        self._asks_since: dict[int, int] = {}  # by who asks whether it may stand
        self._cannot_ask = set[int]()  # those of whom a voter knows no pre-votes

    # --- epochs -------------------------------------------------------------------------

    def started(self, host: Host, leader: LeaderAndEpoch, *, leads: bool) -> None:
        self._hears.pop(host.node_id, None)
        self._asks_since.pop(host.node_id, None)
        persisted = self._persisted.get(_disk(host), 0)
        if leader.epoch < persisted:
            raise Violation(
                "R-EM", f"node {host.node_id} restarts in epoch {leader.epoch} < {persisted}"
            )
        if leads and leader.epoch <= persisted:
            raise Violation("R-UE", f"node {host.node_id} resumes as leader of {leader.epoch}")

    def saved(self, host: Host, election: ElectionState) -> None:
        """quorum-state is on the medium."""
        before = self._persisted.get(_disk(host), 0)
        if election.epoch < before:
            raise Violation(
                "R-EM", f"node {host.node_id} persists epoch {election.epoch} after {before}"
            )
        self._persisted[_disk(host)] = election.epoch
        if election.leader_id is not None:
            self.one_leader(election.epoch, election.leader_id)

    def changes(self, host: Host, before: LeaderAndEpoch, leader: LeaderAndEpoch) -> None:
        if leader.epoch < before.epoch:
            raise Violation(
                "R-EM", f"node {host.node_id} falls from epoch {before.epoch} to {leader.epoch}"
            )
        if leader.leader_id is not None:
            self.one_leader(leader.epoch, leader.leader_id)

    def one_leader(self, epoch: int, leader_id: int) -> None:
        known = self._leaders.setdefault(epoch, leader_id)
        if known != leader_id:
            raise Violation("R-ES", f"epoch {epoch} has leaders {sorted((known, leader_id))}")

    # --- votes --------------------------------------------------------------------------

    def votes(self, host: Host, epoch: int, candidate: ReplicaKey) -> None:
        """`host` is about to say that it votes for `candidate`."""
        node = host.node_id
        known = self._votes.setdefault((_disk(host), epoch), candidate)
        if not names(known, candidate):
            both = f"{_named(known)} and {_named(candidate)}"
            raise Violation("R-1V", f"node {node} votes for {both} in epoch {epoch}")
        durable = host.disk.log(METADATA_LOG).election
        if durable.epoch > epoch:
            return  # it may have moved on before this answer left: it cannot vote in `epoch` again
        voted = durable.voted
        if durable.epoch < epoch or voted is None or not names(voted, candidate):
            has = f"its disk has {_told(durable)}"
            raise Violation(
                "R-VD", f"node {node} votes for {_named(candidate)} in epoch {epoch}, {has}"
            )

    def is_meant(self, host: Host, voter: ReplicaKey) -> None:
        """R-1V: a vote that another disk is asked for may have been given already, by that one."""
        if not names(voter, key_of(host)):
            raise Violation("R-1V", f"node {host.node_id} votes in the place of {_named(voter)}")

    def announces(self, host: Host, epoch: int) -> None:
        """R-VD holds for leading, too: else a crash makes it a candidate of its own epoch."""
        durable = host.disk.log(METADATA_LOG).election
        if durable.epoch < epoch or (durable.epoch == epoch and durable.leader_id != host.node_id):
            has = f"its disk has {_told(durable)}"
            raise Violation("R-VD", f"node {host.node_id} announces epoch {epoch}, {has}")

    # --- pre-votes ----------------------------------------------------------------------

    def hears_leader(self, node: int, epoch: int | None) -> None:
        """Of which epoch does it lead, or follow a leader that it has heard? None: of none.

        As long as it does, it refuses pre-votes.
        """
        if epoch is None:
            self._hears.pop(node, None)
        elif node not in self._hears or self._hears[node][0] != epoch:
            self._hears[node] = epoch, self._world.events_done

    def asks(self, node: int, *, asks: bool) -> None:
        self._cannot_ask.discard(node)
        if not asks:
            self._asks_since.pop(node, None)
        elif node not in self._asks_since:
            self._asks_since[node] = self._world.events_done

    def cannot_ask(self, node: int) -> None:
        """A voter that it asks is of a release without pre-votes."""
        self._cannot_ask.add(node)

    def stands(self, host: Host) -> None:
        """R-PV: who begins an epoch has asked, and a majority could tell it that it may.

        Who has heard its leader since before it was asked cannot have said so (KIP-996).
        """
        if host.node_id in self._cannot_ask:
            return
        now = self._world.events_done
        asks_since = self._asks_since.get(host.node_id, now)
        voters = self._view.voters_of(host)
        willing = [
            voter.id
            for voter in voters
            if voter.id == host.node_id or self._hears.get(voter.id, (0, now))[1] >= asks_since
        ]
        if len(willing) < majority_count(len(voters)):
            raise Violation(
                "R-PV", f"node {host.node_id} stands, though only {willing} do not hear a leader"
            )

    # --- hearing ------------------------------------------------------------------------

    def hears_majority(self, host: Host, epoch: int, heard: Heard, voters: Voters) -> None:
        """R-CQ: a leader that heard no majority of its voters for long enough resigns."""
        if voters is not heard.voters:
            heard.voters, heard.since_us = voters, self._world.now_us
        since_us = max(heard.since_us, host.resumed_us)
        if self._world.now_us - since_us <= self._check_quorum_us:
            return
        others = [voter.id for voter in voters if voter.id != host.node_id]
        needed = majority_count(len(voters)) - (len(voters) - len(others))
        if needed == 0:
            return
        heard_us = sorted((heard.at_us.get(voter, 0) for voter in others), reverse=True)
        if self._world.now_us - max(heard_us[needed - 1], since_us) > self._check_quorum_us:
            raise Violation("R-CQ", f"node {host.node_id} still leads {epoch}, unheard")


def _disk(host: Host) -> Disk:
    return host.node_id, host.directory_id


def _named(replica: ReplicaKey) -> str:
    known = replica.directory_id != ZERO_UUID
    return f"{replica.id}:{uuid_text(replica.directory_id)}" if known else str(replica.id)


def _told(election: ElectionState) -> str:
    vote = "no vote" if election.voted is None else f"a vote for {_named(election.voted)}"
    return f"epoch {election.epoch}, leader {election.leader_id or 'unknown'} and {vote}"


_FIRST_MS = 200


class BackoffInvariants:
    """L-BO: who has lost an election stands again in time.

    The pause after the first loss in a row is up to 200 ms, after each more up to twice as long,
    and never longer than the maximum. What counts are the losses that were seen, not those that a
    candidate remembers. Where a voter is silent, a candidate waits for its election timer instead,
    which L-EL bounds; if it stands again then, that is one more loss. Source: KIP-595.
    """

    def __init__(self, longest_ms: int) -> None:
        self._longest_ms = longest_ms
        self._losses: dict[int, int] = {}  # by node: in a row, of its present process

    def started(self, host: Host) -> None:
        self._losses.pop(host.node_id, None)

    def changes(self, host: Host, before: Role | None, role: Role) -> None:
        """A candidate that asks anew has lost. Whoever leads, follows or waits has a new start."""
        if not isinstance(role, Prospective | Candidate):
            self._losses.pop(host.node_id, None)
        elif isinstance(before, Candidate):
            self._losses[host.node_id] = self._losses.get(host.node_id, 0) + 1

    def waits(self, host: Host, role: Candidate) -> None:
        if role.backoff_until_ms is None:
            return
        before = self._losses.get(host.node_id, 0)
        pause_ms = role.backoff_until_ms - host.now_ms
        longest_ms = min(_FIRST_MS << before, self._longest_ms)
        if pause_ms > longest_ms:
            raise Violation(
                "L-BO",
                f"node {host.node_id} lost {before + 1} elections in a row, and waits for another"
                f" {pause_ms} ms: {longest_ms} ms would be the longest",
            )
