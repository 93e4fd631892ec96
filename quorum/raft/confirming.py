"""Confirming leadership: a leader asks a majority whether it still leads, for reads.

A leader that was cut off or paused may have been replaced without knowing. Before it answers from
its own state it asks the other voters with a BeginQuorumEpoch of its epoch: one who answers without
an error had not moved on to another epoch when the question left. With a majority of such answers
nobody can have been elected before the question was asked, so nothing was committed that this
leader does not know. One round answers all questions that were asked before it began.

Fetches are no answers, though followers send them all the time: one that arrives after a question
may have left long before it. A leader that wakes from a pause finds some in its sockets, of voters
that have elected another since. Nothing in a Fetch says which answer of ours it follows.

What is committed at the time of the question, and when an application has it, is for who asks to
see to (`quorum.core.confirmed_reads`). A question is never refused here: the leader resigns, or who
asked has waited long enough.

Source: Raft thesis 6.4 (read index), on KIP-595's messages.
"""

from quorum.core.effects import earliest
from quorum.raft.leading import hears_majority
from quorum.raft.messages import begin_request
from quorum.raft.replica import VOTE_CHANNEL, Replica
from quorum.raft.roles import Leader, Role
from quorum.raft.voters import Voter

__all__ = ["answered", "ask", "deadline_ms", "is_confirmed", "poll"]


def ask(replica: Replica, role: Leader, now_ms: int) -> int:
    """Does this replica lead? The number of the question; they grow by one in an epoch."""
    role.confirming.asked += 1
    poll(replica, role, now_ms)
    return role.confirming.asked


def poll(replica: Replica, role: Leader, now_ms: int) -> None:
    """Begin a round if there is a question and none is under way; ask whoever is free."""
    questions = role.confirming
    _conclude(replica, role)
    if questions.confirmed == questions.round and questions.asked > questions.round:
        _begin(role)
        _conclude(replica, role)
    if questions.confirmed < questions.round:
        _ask_voters(replica, role, now_ms)


def _begin(role: Leader) -> None:
    """A round for all questions so far: answers to what was sent before it prove nothing."""
    role.confirming.round = role.confirming.asked
    role.confirming.heard.clear()
    role.confirming.sent.clear()


def is_confirmed(replica: Replica, role: Leader) -> bool:
    """Has a majority of those who vote now answered in this round?"""
    heard = sum(voter.key in role.confirming.heard for voter in _others(replica))
    return hears_majority(heard, len(replica.voters), is_voter=replica.is_voter)


def _conclude(replica: Replica, role: Leader) -> None:
    questions = role.confirming
    if questions.confirmed < questions.round and is_confirmed(replica, role):
        questions.confirmed = questions.round


def _ask_voters(replica: Replica, role: Leader, now_ms: int) -> None:
    questions = role.confirming
    own = replica.endpoint
    assert own is not None, "a leader is a voter, or was"
    for voter in _others(replica):
        is_asked = voter.key in questions.heard or voter.key in questions.sent.values()
        if not is_asked and replica.peers.is_free(voter.key.id, now_ms):
            body = begin_request(replica.config, voter.key, epoch=role.epoch, leader=own)
            questions.sent[replica.ask(voter.endpoint, VOTE_CHANNEL, body)] = voter.key


def answered(role: Role, number: int, *, confirms: bool) -> None:
    """What came of our request `number`: whose voter did not confirm is asked again."""
    if isinstance(role, Leader):
        key = role.confirming.sent.pop(number, None)
        if key is not None and confirms:
            role.confirming.heard.add(key)


def deadline_ms(replica: Replica, role: Leader) -> int | None:
    """When a voter may be asked again that failed to answer."""
    questions = role.confirming
    if questions.confirmed == questions.round:
        return None
    return earliest(
        *(
            replica.peers.free_at_ms(voter.key.id)
            for voter in _others(replica)
            if voter.key not in questions.heard
        )
    )


def _others(replica: Replica) -> tuple[Voter, ...]:
    return replica.voters.others(replica.node_id)
