"""Tells what brokers ask the controller for, and what nodes refuse one another."""

from jepsen_like.scenarios.story import Story
from quorum.core.effects import Effect, Event, Reply, Request, Send
from wire.errors import ErrorCode
from wire.messages.fetching import FetchedPartition, FetchRequest, FetchResponse
from wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse
from wire.messages.registration import BrokerRegistrationRequest
from wire.primitives import METADATA_TOPIC_ID

__all__ = ["RequestStory"]

_TOLD = AlterPartitionRequest | FetchRequest


class RequestStory:
    """ISR changes that are asked for, and fetches that are not served."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._asked: dict[tuple[int, int], object] = {}  # by node and token: the request

    def received(self, node: int, event: Event) -> None:
        if not isinstance(event, Request) or not isinstance(event.body, _TOLD):
            return
        if not _is_for_metadata(event.body):
            self._asked[node, event.token] = event.body

    def performing(self, node: int, effect: Effect) -> None:
        match effect:
            case Send(body=AlterPartitionRequest() as body):
                asked = body.topics[0].partitions[0]
                members = sorted(member.broker_id for member in asked.new_isr_with_epochs)
                self._story.tell(
                    f"{node} asks for the ISR {', '.join(map(str, members))},"
                    f" in partition epoch {asked.partition_epoch}"
                )
            case Send(body=BrokerRegistrationRequest()):
                self._story.tell(f"{node} asks to be registered")
            case Reply():
                self._replied(node, self._asked.pop((node, effect.token), None), effect.body)
            case _:
                pass

    def _replied(self, node: int, asked: object, answer: object) -> None:
        match asked, answer:
            case AlterPartitionRequest(broker_id=broker), AlterPartitionResponse() as told:
                results = [each for topic in told.topics for each in topic.partitions]
                errors = [told.error_code, *(result.error_code for result in results)]
                for error in errors:
                    if error is not ErrorCode.NONE:
                        self._story.tell(f"{node} refuses that to {broker}: {error.name}")
            case FetchRequest(replica_state=state), FetchResponse(responses=topics):
                for topic in topics:
                    for partition in topic.partitions:
                        self._fetched(node, state.replica_id, partition)
            case _:
                pass

    def _fetched(self, node: int, follower: int, answer: FetchedPartition) -> None:
        """Of followers; a client tells its answers itself."""
        diverging = answer.diverging_epoch
        if follower < 0:
            return
        if answer.error_code is not ErrorCode.NONE:
            self._story.tell(f"{node} refuses a fetch of {follower}: {answer.error_code.name}")
        elif diverging.end_offset >= 0:
            self._story.tell(
                f"{node} tells {follower} that their logs part: here epoch {diverging.epoch}"
                f" ends at offset {diverging.end_offset}"
            )


def _is_for_metadata(body: AlterPartitionRequest | FetchRequest) -> bool:
    """How brokers follow the metadata log is told in the scenarios of a quorum."""
    return isinstance(body, FetchRequest) and any(
        topic.topic_id == METADATA_TOPIC_ID for topic in body.topics
    )
