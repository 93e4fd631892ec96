"""Planted bugs in votes, epochs and leadership, and in reads that only a sure leader may answer.

Those of linearizable reads are found at random but seldom: tests/sim/test_reads.py has the
schedule.
"""

from dataclasses import replace
from random import Random
from typing import Any

from jepsen_like.planted.planting import plant_in
from quorum.core.effects import Event, Request
from quorum.core.types import ElectionState, OffsetAndEpoch, ReplicaKey
from quorum.node import confirmed_leadership
from quorum.node.confirmed_leadership import ConfirmingRaftNode, Questions
from quorum.raft import becoming, electing, leading, roles, transitions, vote
from quorum.raft import raft_node as raft
from quorum.raft.messages import fetch_partition
from quorum.raft.raft_outbox import HoldingOutbox
from quorum.raft.replica import Replica
from quorum.raft.responses import KnownLeader
from quorum.raft.roles import Candidate, Follower, Leader, Prospective, Role, Unattached
from wire.errors import ErrorCode
from wire.messages.fetching import FetchRequest
from wire.messages.quorum_epochs import VotePartition, VoteRequest, VoteResponse

_election_backoff_ms = electing.election_backoff_ms
_election_of = roles.election_of
_initial_role = raft.initial_role
_poll_leader = leading.poll
_maybe_transition = transitions.maybe_transition
_send = HoldingOutbox.send
_save = HoldingOutbox.save
_stored = HoldingOutbox.stored
_check_vote = vote.check_vote
_receive = ConfirmingRaftNode.receive


# --- what is saved --------------------------------------------------------------------------


@plant_in("vote", HoldingOutbox, "save", seeds_max=20, found_at=3)
def waits_for_the_first_under_way(
    self: HoldingOutbox, election: ElectionState, kraft_version: int = 1
) -> None:
    """Breaks: a message waits for the last election saved, not for the first under way."""
    before = self._saved_by
    _save(self, election, kraft_version)
    if before > self._stored:
        self._saved_by = before


@plant_in("vote", HoldingOutbox, "stored", seeds_max=20, found_at=3)
def releases_all_that_is_held(self: HoldingOutbox, number: int) -> None:
    """Breaks: a sync releases what waited for it, not what waits for the next."""
    _stored(self, self.token().number)


@plant_in("vote", raft, "election_of", seeds_max=10, found_at=0)
def forgets_its_vote(role: Role, node_id: int) -> ElectionState:
    """Breaks: quorum-state holds the vote."""
    return replace(_election_of(role, node_id), voted=None)


@plant_in("vote", raft, "initial_role", seeds_max=10, found_at=0)
def resumes_leadership(replica: Replica, election: ElectionState, now_ms: int) -> Role:
    """Breaks: a restarted leader does not resume its epoch."""
    if election.leader_id == replica.node_id:
        votes: dict[int, bool | None] = dict.fromkeys(replica.voters.ids, True)
        was = Candidate(
            epoch=election.epoch, voted=replica.key, election_deadline_ms=now_ms, votes=votes
        )
        return leading.leader(replica, was, now_ms)
    return _initial_role(replica, election, now_ms)


# --- who gets a vote ------------------------------------------------------------------------


@plant_in("vote", vote, "grants_vote", seeds_max=15, found_at=5)
def votes_twice(
    role: Role, candidate: ReplicaKey, *, last: OffsetAndEpoch, ours: OffsetAndEpoch
) -> bool:
    """Breaks: one vote an epoch."""
    match role:
        case Unattached() | Prospective():
            return role.leader_id is None and last.is_at_least(ours)
        case _:
            return False


@plant_in("vote", OffsetAndEpoch, "is_at_least", seeds_max=100, found_at=51)
def compares_offsets_first(self: OffsetAndEpoch, other: OffsetAndEpoch) -> bool:
    """Breaks: logs are compared by epoch, then by offset."""
    return (self.offset, self.epoch) >= (other.offset, other.epoch)


@plant_in("vote", vote, "grants_pre_vote", seeds_max=15, found_at=1)
def grants_pre_votes_while_following(
    role: Role, *, last: OffsetAndEpoch, ours: OffsetAndEpoch
) -> bool:
    """Breaks: who hears its leader refuses pre-votes."""
    return not isinstance(role, Leader) and last.is_at_least(ours)


@plant_in("vote", becoming, "campaign", seeds_max=10, found_at=1)
def stands_without_asking(replica: Replica, previous: Unattached | Follower, now_ms: int) -> Role:
    """Breaks: who would stand asks first whether it may (R5, KIP-996)."""
    return becoming.candidate(replica, previous, now_ms)


@plant_in("vote", vote, "grants_pre_vote", seeds_max=30, found_at=3)
def refuses_pre_votes_for_any_leader(
    role: Role, *, last: OffsetAndEpoch, ours: OffsetAndEpoch
) -> bool:
    """Breaks: who has not heard its leader yet grants pre-votes (R6, KAFKA-17641)."""
    return not isinstance(role, Leader | Follower) and last.is_at_least(ours)


# --- what is remembered from role to role ---------------------------------------------------


@plant_in("vote", HoldingOutbox, "send", seeds_max=10, found_at=1)
def holds_back_only_votes(self: HoldingOutbox, message: Any) -> None:
    """Breaks: whatever speaks of leading waits until that is saved."""
    if isinstance(message.body, VoteRequest | VoteResponse):
        _send(self, message)
    else:
        self.effects.append(message)


@plant_in("vote", transitions, "maybe_transition", seeds_max=10, found_at=1)
def ignores_later_epochs(replica: Replica, role: Role, told: KnownLeader, now_ms: int) -> object:
    """Breaks: a later epoch in an answer is adopted."""
    return None if told.epoch > role.epoch else _maybe_transition(replica, role, told, now_ms)


@plant_in("vote", electing, "election_backoff_ms", seeds_max=40, found_at=3)
def counts_one_loss_too_many(random: Random, retries: int, backoff_max_ms: int) -> int:
    """Breaks: the pause after a lost election is up to 200 ms, doubled with each more in a row."""
    return _election_backoff_ms(random, retries + 1, backoff_max_ms)


# --- leading --------------------------------------------------------------------------------


@plant_in("vote", leading, "poll", seeds_max=25, found_at=8)
def never_checks_quorum(replica: Replica, role: Leader, now_ms: int) -> Role | None:
    """Breaks: a leader that hears no majority resigns."""
    role.check_quorum_deadline_ms = now_ms + replica.config.check_quorum_timeout_ms
    return _poll_leader(replica, role, now_ms)


# --- changes that break nothing by themselves -----------------------------------------------


@plant_in("vote", vote, "check_vote")
def judges_candidates_of_any_epoch(ask: VotePartition, epoch: int) -> ErrorCode:
    """Breaks: a candidate of an earlier epoch is refused."""
    error = _check_vote(ask, epoch)
    return ErrorCode.NONE if error is ErrorCode.FENCED_LEADER_EPOCH else error


# Candidates that wait for half as long meet more often, and one of them wins in the end. A pause is
# drawn from zero on: one that is short is in the range (L-BO), and a run has few of them. The whole
# range is held by a test of the rule.


@plant_in("vote", electing, "election_backoff_ms")
def halves_the_backoff(random: Random, retries: int, backoff_max_ms: int) -> int:
    """Breaks: the back-off after a lost election is drawn from 200 ms, doubled with each loss
    (KIP-595)."""
    return _election_backoff_ms(random, retries, backoff_max_ms) // 2


# --- linearizable reads ------------------------------------------------------------------------


@plant_in("read", ConfirmingRaftNode, "receive")
def takes_fetches_for_answers(self: ConfirmingRaftNode, event: Event, now_ms: int) -> None:
    """Breaks: a fetch says nothing of the time after it left."""
    match event:
        case Request(body=FetchRequest() as asked):
            questions = self._open_questions()
            partition = fetch_partition(asked.topics)
            voter = self.replica.voters.get(asked.replica_state.replica_id)
            if (
                questions is not None
                and voter is not None
                and partition is not None
                and partition.current_leader_epoch == questions.epoch
            ):
                questions.heard.add(voter.key)
    _receive(self, event, now_ms)


@plant_in("read", confirmed_leadership, "begin_round")
def counts_the_answers_of_earlier_rounds(questions: Questions) -> None:
    """Breaks: an answer that came before the question is none."""
    questions.round = questions.asked
