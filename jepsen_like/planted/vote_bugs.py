"""Planted bugs in votes, epochs and leadership. What each breaks stands beside it."""

from dataclasses import replace
from random import Random
from typing import Any

from jepsen_like.planted.planting import Plants, plant_in
from quorum.core.effects import StorageFailed
from quorum.core.types import ElectionState, OffsetAndEpoch, ReplicaKey
from quorum.raft import becoming, electing, leading, roles, transitions, vote
from quorum.raft import raft_node as raft
from quorum.raft import raft_outbox as outbox
from quorum.raft.raft_node import RaftNode
from quorum.raft.raft_outbox import HoldingOutbox
from quorum.raft.replica import Replica
from quorum.raft.responses import Known
from quorum.raft.roles import Candidate, Follower, Leader, Prospective, Role, Unattached
from wire.errors import ErrorCode
from wire.messages.quorum_epochs import VotePartition, VoteRequest, VoteResponse

__all__ = ["VOTE_PLANTS", "VOTE_SURVIVORS"]

VOTE_PLANTS: Plants = {}
VOTE_SURVIVORS: Plants = {}

# What a plant calls of the rule that it replaces.
_election_backoff_ms = electing.election_backoff_ms
_election_of = roles.election_of
_initial_role = raft.initial_role
_poll_leader = leading.poll
_maybe_transition = transitions.maybe_transition
_send = HoldingOutbox.send
_save = HoldingOutbox.save
_stored = HoldingOutbox.stored
_check_vote = vote.check_vote


# --- what is saved --------------------------------------------------------------------------


@plant_in(
    VOTE_PLANTS,
    "a vote is durable before the answer leaves",
    holder=outbox,
    name="waits_for",
    seeds_max=10,
)
def answers_before_saving(saved_by: int, stored: int) -> bool:
    return False


@plant_in(
    VOTE_PLANTS,
    "a message waits for the last election saved, not for the first under way",
    holder=HoldingOutbox,
    name="save",
    seeds_max=20,
)
def waits_for_the_first_under_way(
    self: HoldingOutbox, election: ElectionState, kraft_version: int = 1
) -> None:
    before = self._saved_by
    _save(self, election, kraft_version)
    if before > self._stored:
        self._saved_by = before


@plant_in(
    VOTE_PLANTS,
    "a sync releases what waited for it, not what waits for the next",
    holder=HoldingOutbox,
    name="stored",
    seeds_max=20,
)
def releases_all_that_is_held(self: HoldingOutbox, number: int) -> None:
    _stored(self, self.token().number)


@plant_in(VOTE_PLANTS, "quorum-state holds the vote", holder=raft, name="election_of", seeds_max=10)
def forgets_its_vote(role: Role, node_id: int) -> ElectionState:
    return replace(_election_of(role, node_id), voted=None)


@plant_in(
    VOTE_PLANTS,
    "a restarted leader does not resume its epoch",
    holder=raft,
    name="initial_role",
    seeds_max=10,
)
def resumes_leadership(replica: Replica, election: ElectionState, now_ms: int) -> Role:
    if election.leader_id == replica.node_id:
        votes: dict[int, bool | None] = dict.fromkeys(replica.voters.ids, True)
        was = Candidate(
            epoch=election.epoch, voted=replica.key, election_deadline_ms=now_ms, votes=votes
        )
        return leading.leader(replica, was, now_ms)
    return _initial_role(replica, election, now_ms)


# --- who gets a vote ------------------------------------------------------------------------


@plant_in(VOTE_PLANTS, "one vote an epoch", holder=vote, name="grants_vote", seeds_max=15)
def votes_twice(
    role: Role, candidate: ReplicaKey, *, last: OffsetAndEpoch, ours: OffsetAndEpoch
) -> bool:
    match role:
        case Unattached() | Prospective():
            return role.leader_id is None and last.is_at_least(ours)
        case _:
            return False


@plant_in(
    VOTE_PLANTS,
    "logs are compared by epoch, then by offset",
    holder=OffsetAndEpoch,
    name="is_at_least",
    seeds_max=100,
)
def compares_offsets_first(self: OffsetAndEpoch, other: OffsetAndEpoch) -> bool:
    return self >= other


@plant_in(
    VOTE_PLANTS,
    "who hears its leader refuses pre-votes",
    holder=vote,
    name="grants_pre_vote",
    seeds_max=15,
)
def grants_pre_votes_while_following(
    role: Role, *, last: OffsetAndEpoch, ours: OffsetAndEpoch
) -> bool:
    return not isinstance(role, Leader) and last.is_at_least(ours)


@plant_in(
    VOTE_PLANTS,
    "who would stand asks first whether it may (R5, KIP-996)",
    holder=becoming,
    name="campaign",
    seeds_max=10,
)
def stands_without_asking(replica: Replica, previous: Unattached | Follower, now_ms: int) -> Role:
    return becoming.candidate(replica, previous, now_ms)


@plant_in(
    VOTE_PLANTS,
    "who has not heard its leader yet grants pre-votes (R6, KAFKA-17641)",
    holder=vote,
    name="grants_pre_vote",
    seeds_max=30,
)
def refuses_pre_votes_for_any_leader(
    role: Role, *, last: OffsetAndEpoch, ours: OffsetAndEpoch
) -> bool:
    return not isinstance(role, Leader | Follower) and last.is_at_least(ours)


# --- what is remembered from role to role ---------------------------------------------------


@plant_in(
    VOTE_PLANTS,
    "whatever speaks of leading waits until that is saved",
    holder=HoldingOutbox,
    name="send",
    seeds_max=10,
)
def holds_back_only_votes(self: HoldingOutbox, message: Any) -> None:
    if isinstance(message.body, VoteRequest | VoteResponse):
        _send(self, message)
    else:
        self.effects.append(message)


@plant_in(
    VOTE_PLANTS,
    "a later epoch in an answer is adopted",
    holder=transitions,
    name="maybe_transition",
    seeds_max=10,
)
def ignores_later_epochs(replica: Replica, role: Role, told: Known, now_ms: int) -> object:
    return None if told.epoch > role.epoch else _maybe_transition(replica, role, told, now_ms)


# --- leading --------------------------------------------------------------------------------


@plant_in(
    VOTE_PLANTS,
    "a leader that hears no majority resigns",
    holder=leading,
    name="poll",
    seeds_max=25,
)
def never_checks_quorum(replica: Replica, role: Leader, now_ms: int) -> Role | None:
    role.check_quorum_deadline_ms = now_ms + replica.config.check_quorum_timeout_ms
    return _poll_leader(replica, role, now_ms)


@plant_in(
    VOTE_PLANTS,
    "who cannot store stops (R9, KAFKA-14644)",
    holder=RaftNode,
    name="storage_failed",
    seeds_max=50,
)
def goes_on_without_its_disk(self: RaftNode, failed: StorageFailed, _now_ms: int) -> None:
    return


# --- changes that break nothing by themselves -----------------------------------------------


@plant_in(
    VOTE_SURVIVORS, "a candidate of an earlier epoch is refused", holder=vote, name="check_vote"
)
def judges_candidates_of_any_epoch(ask: VotePartition, epoch: int) -> ErrorCode:
    error = _check_vote(ask, epoch)
    return ErrorCode.NONE if error is ErrorCode.FENCED_LEADER_EPOCH else error


# Candidates that wait for half as long meet more often, and one of them wins in the end. The range
# is held by a test of the rule.


@plant_in(
    VOTE_SURVIVORS,
    "the back-off after a lost election is drawn from 200 ms, doubled with each loss (KIP-595)",
    holder=electing,
    name="election_backoff_ms",
)
def halves_the_backoff(random: Random, retries: int, backoff_max_ms: int) -> int:
    return _election_backoff_ms(random, retries, backoff_max_ms) // 2
