"""Tells who would vote for whom, who votes for whom, and where logs are said to part."""

from jepsen_like.scenarios.story import Story
from quorum.core.effects import Effect, Event, Reply, Request
from wire.messages.fetching import FetchRequest, FetchResponse
from wire.messages.quorum_epochs import VotePartition, VoteRequest, VoteResponse

__all__ = ["VoteStory"]


class VoteStory:
    """Answers of a replica to others, beside the requests that they are for."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._asked: dict[tuple[int, int], object] = {}  # by node and token: the request

    def received(self, node: int, event: Event) -> None:
        if isinstance(event, Request) and isinstance(event.body, VoteRequest | FetchRequest):
            self._asked[node, event.token] = event.body

    def performing(self, node: int, effect: Effect) -> None:
        if not isinstance(effect, Reply):
            return
        match self._asked.pop((node, effect.token), None), effect.body:
            case VoteRequest(topics=(asked, *_)), VoteResponse(topics=(answered, *_)):
                vote = asked.partitions[0]
                is_granted = answered.partitions[0].vote_granted
                self._story.tell(f"{node} {_said(vote, is_granted)}")
            case FetchRequest(replica_state=state), FetchResponse(responses=(fetched, *_)):
                diverging = fetched.partitions[0].diverging_epoch
                if diverging.end_offset >= 0:
                    self._story.tell(
                        f"{node} tells {state.replica_id} that their logs part: here epoch"
                        f" {diverging.epoch} ends at offset {diverging.end_offset}"
                    )
            case _:
                pass


def _said(vote: VotePartition, is_granted: bool) -> str:
    """Of a pre-vote the epoch is the one that the candidate would leave."""
    candidate, epoch = vote.replica_id, vote.replica_epoch
    if vote.pre_vote:
        return f"{'would' if is_granted else 'would not'} vote for {candidate}"
    return f"{'votes' if is_granted else 'does not vote'} for {candidate} in epoch {epoch}"
