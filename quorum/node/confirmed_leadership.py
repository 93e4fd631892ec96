"""Confirmed leadership: a replica that can be asked whether it still leads, for linearizable reads.

A leader that was cut off or paused may have been replaced without knowing. Before it answers from
its own state it asks the other voters with a BeginQuorumEpoch of its epoch: one who answers without
an error had not moved on to another epoch when the question left. With a majority of such answers
nobody can have been elected before the question was asked, so nothing was committed that this
leader does not know. One round answers all questions that were asked before it began.

Fetches are no answers, though followers send them all the time: one that arrives after a question
may have left long before it. A leader that wakes from a pause finds some in its sockets, of voters
that have elected another since. Nothing in a Fetch says which answer of ours it follows.

The asker sees to what was committed at the time of the question, and to whether its application has
it (`quorum.node.confirmed_reads`). A question is never refused here: it ends when the leader
resigns, or when the asker has waited long enough.

Kafka's protocol has no such read: a node that serves none is a plain `RaftNode`, which knows
nothing of this.

Source: Raft thesis 6.4 (read index), on KIP-595's messages.
"""

from dataclasses import dataclass, field

from quorum.core.effects import Event, RequestFailed, Response, earliest
from quorum.core.types import ReplicaKey
from quorum.node.member import Member
from quorum.raft.leading import hears_majority
from quorum.raft.messages import begin_request, election_partition
from quorum.raft.raft_node import RaftNode
from quorum.raft.replica import VOTE_CHANNEL, Replica
from quorum.raft.roles import Leader, name_of
from quorum.raft.voters import Voter
from wire.errors import ErrorCode
from wire.messages.quorum_epochs import BeginQuorumEpochResponse

__all__ = [
    "ConfirmingMember",
    "ConfirmingRaftNode",
    "Questions",
    "begin_round",
    "is_confirmed",
    "who_confirms",
]


@dataclass(slots=True, kw_only=True)
class Questions:
    """Numbered questions whether this replica still leads `epoch`; one round answers many."""

    epoch: int
    asked: int = 0  # the last question
    round: int = 0  # the last question that the last round is to answer
    confirmed: int = 0  # the last question answered; < `round` while a round lasts
    sent: dict[int, ReplicaKey] = field(default_factory=dict)  # of this round, by token
    heard: set[ReplicaKey] = field(default_factory=set)  # voters that answered in this round


class ConfirmingRaftNode(RaftNode):
    """A `RaftNode` that is a `quorum.node.confirmed_reads.ConfirmingLog`, too."""

    _questions: Questions | None = None  # of the epoch in which it was last asked

    def confirm_leadership(self, now_ms: int) -> int:
        assert isinstance(self.role, Leader), f"asked as {name_of(self.role)}"
        self._now_ms = now_ms
        questions = self._questions
        if questions is None or questions.epoch != self.role.epoch:
            questions = self._questions = Questions(epoch=self.role.epoch)
        questions.asked += 1
        _go_on(self.replica, questions, now_ms)
        return questions.asked

    @property
    def confirmed_through(self) -> int:
        questions = self._questions_of_epoch()
        return 0 if questions is None else questions.confirmed

    def receive(self, event: Event, now_ms: int) -> None:
        questions = self._open_questions()
        if questions is not None:
            voter = who_confirms(questions, event)
            if voter is not None:
                questions.heard.add(voter)
        super().receive(event, now_ms)

    def deadline_ms(self) -> int | None:
        due_ms, questions = super().deadline_ms(), self._open_questions()
        if questions is None:
            return due_ms
        return earliest(due_ms, _deadline_ms(self.replica, questions))

    def _poll(self, now_ms: int) -> None:
        """Ask on while we lead, after all else that is due."""
        super()._poll(now_ms)
        questions = self._open_questions()
        if questions is not None:
            _go_on(self.replica, questions, now_ms)

    def _open_questions(self) -> Questions | None:
        """The questions, if one of them has no answer yet."""
        questions = self._questions
        if questions is None or questions.confirmed == questions.asked or self._has_stopped:
            return None
        return self._questions_of_epoch()

    def _questions_of_epoch(self) -> Questions | None:
        """The questions of the epoch that this replica leads, if it leads one and was asked."""
        questions = self._questions
        if questions is None or not isinstance(self.role, Leader):
            return None
        return questions if questions.epoch == self.role.epoch else None


class ConfirmingMember(Member):
    """A `Member` of an engine that can be asked, ours or another.

    Any event of the engine may make a read of an application ready: it looks every time while its
    applications lead. Only then does a read wait, for they refuse all when they resign.
    """

    def settle(self, now_ms: int) -> None:
        if self._led_epoch is not None:
            self._is_due_stale = True
        super().settle(now_ms)


def who_confirms(questions: Questions, event: Event) -> ReplicaKey | None:
    """The voter that confirms with `event`. One that was asked and does not is asked again."""
    match event:
        case Response(body=BeginQuorumEpochResponse() as told):
            asked = questions.sent.pop(event.token.number, None)
            return asked if _is_accepted(told, questions.epoch) else None
        case RequestFailed():
            questions.sent.pop(event.token.number, None)
            return None
        case _:
            return None


def _is_accepted(told: BeginQuorumEpochResponse, epoch: int) -> bool:
    partition = election_partition(told.topics)
    if told.error_code is not ErrorCode.NONE or partition is None:
        return False
    return partition.error_code is ErrorCode.NONE and partition.leader_epoch == epoch


def is_confirmed(replica: Replica, questions: Questions) -> bool:
    """Has a majority of the voters in force answered in this round?"""
    heard = sum(voter.key in questions.heard for voter in _others(replica))
    return hears_majority(heard, len(replica.voters), is_voter=replica.is_voter)


def _go_on(replica: Replica, questions: Questions, now_ms: int) -> None:
    """Begin a round if there is a question and none is under way; ask whoever is free."""
    _conclude(replica, questions)
    if questions.confirmed == questions.round and questions.asked > questions.round:
        begin_round(questions)
        _conclude(replica, questions)
    if questions.confirmed < questions.round:
        _ask_voters(replica, questions, now_ms)


def begin_round(questions: Questions) -> None:
    """A round for all questions so far: answers to what was sent before it prove nothing."""
    questions.round = questions.asked
    questions.heard.clear()
    questions.sent.clear()


def _conclude(replica: Replica, questions: Questions) -> None:
    if questions.confirmed < questions.round and is_confirmed(replica, questions):
        questions.confirmed = questions.round


def _ask_voters(replica: Replica, questions: Questions, now_ms: int) -> None:
    own = replica.endpoint
    assert own is not None, "a leader is a voter, or was"
    for voter in _others(replica):
        is_asked = voter.key in questions.heard or voter.key in questions.sent.values()
        if not is_asked and replica.peers.is_free(voter.key.id, now_ms):
            body = begin_request(replica.config, voter.key, epoch=questions.epoch, leader=own)
            questions.sent[replica.ask(voter.endpoint, VOTE_CHANNEL, body)] = voter.key


def _deadline_ms(replica: Replica, questions: Questions) -> int | None:
    """When a voter may be asked again that failed to answer."""
    return earliest(
        *(
            replica.peers.free_at_ms(voter.key.id)
            for voter in _others(replica)
            if voter.key not in questions.heard
        )
    )


def _others(replica: Replica) -> tuple[Voter, ...]:
    return replica.voters.others(replica.node_id)
