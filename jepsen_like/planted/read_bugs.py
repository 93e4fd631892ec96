"""Planted bugs of linearizable reads: a leader that answers without knowing that it leads.

Found at random but seldom: tests/sim/test_reads.py has the schedule.
"""

from jepsen_like.planted.planting import plant_in
from quorum.core.effects import Event, Request
from quorum.node import confirmed_leadership
from quorum.node.confirmed_leadership import ConfirmingRaftNode, Questions
from quorum.raft.messages import fetch_partition
from wire.messages.fetching import FetchRequest

_receive = ConfirmingRaftNode.receive


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
