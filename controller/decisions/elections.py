"""ElectLeaders: the elections that somebody asks for.

A preferred election puts the first replica in charge where it is in sync; an unclean one finds a
leader for a partition that has none, from outside the ISR if it must. Partitions of a request fail
or succeed by themselves. Elections that happen in time by themselves: `periodic_elections`.

Source: KIP-183, KIP-460; Kafka's ReplicationControlManager. Error messages are Kafka's: its tools
print them.
"""

from collections.abc import Iterable, Mapping

from controller import refusals
from controller.config import ControllerConfig
from controller.decisions.decision import Decision
from controller.decisions.edits import Edits
from controller.decisions.operation_limits import CHANGES_MAX
from controller.metadata.configs import Refusal
from controller.metadata.election import Election, Wish
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, PartitionState, Rows
from wire.errors import ErrorCode
from wire.messages.partitions import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionElectionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

__all__ = ["decide_elect_leaders"]

_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}  # by the request's election type
_NOT_NEEDED = Refusal(
    ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
)
_NOBODY: Mapping[Election, Refusal] = {
    Election.PREFERRED: Refusal(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
    ),
    Election.UNCLEAN: Refusal(
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        "Eligible topic partition leaders are not available.",
    ),
}


def decide_elect_leaders(
    image: MetadataImage, request: ElectLeadersRequest, config: ControllerConfig
) -> Decision[ElectLeadersResponse]:
    """Hold an election in the partitions that are named, or in all that need one."""
    how = _ELECTIONS.get(request.election_type)
    if how is None:
        message = f"Unknown election type {request.election_type}"
        return _refused(request, ErrorCode.INVALID_REQUEST, message)
    asked = request.topic_partitions
    rows = _rows_that_need_one(image, how)
    count = len(rows) if asked is None else sum(len(topic.partitions) for topic in asked)
    if count > CHANGES_MAX:
        message = f"One request may hold {CHANGES_MAX} elections. Ask for less at a time."
        return _refused(request, ErrorCode.POLICY_VIOLATION, message)
    wanted = _named(image, rows) if asked is None else asked
    edits = Edits(image, config)
    results = tuple(
        ReplicaElectionResult(
            topic=topic.topic,
            partition_result=tuple(
                _result(index, _elect(image, edits, topic.topic, index, how))
                for index in topic.partitions
            ),
        )
        for topic in wanted
    )
    response = ElectLeadersResponse(replica_election_results=results)
    return Decision(response=response, changes=tuple(edits.changes), is_atomic=False)


def _refused(
    request: ElectLeadersRequest, error: ErrorCode, message: str
) -> Decision[ElectLeadersResponse]:
    return Decision(response=refusals.elect_leaders(request, error, message))


def _rows_that_need_one(image: MetadataImage, how: Election) -> Rows:
    """Partitions that have the leader that is wanted are left out of the answer."""
    table = image.partitions
    is_preferred = how is Election.PREFERRED
    return table.rows_led_by_another() if is_preferred else table.rows_without_leader()


def _named(image: MetadataImage, rows: Rows) -> Iterable[TopicPartitions]:
    found: dict[str, list[int]] = {}
    for row in rows.tolist():
        place = image.partitions.place(row)
        assert place is not None, f"row {row} is free but has a leader"
        found.setdefault(image.topics.by_id[place[0]].name, []).append(place[1])
    return [
        TopicPartitions(topic=name, partitions=tuple(sorted(indexes)))
        for name, indexes in sorted(found.items())
    ]


def _result(index: int, refusal: Refusal | None) -> PartitionElectionResult:
    return PartitionElectionResult(
        partition_id=index,
        error_code=ErrorCode.NONE if refusal is None else refusal.error_code,
        error_message=None if refusal is None else refusal.message,
    )


def _elect(
    image: MetadataImage, edits: Edits, name: str, index: int, how: Election
) -> Refusal | None:
    topic = image.topic(name)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    state = edits.state(topic.id, index)
    if state is None:
        message = f"No such partition as {name}-{index}"
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if not _is_needed(state, how):
        return _NOT_NEEDED
    after = edits.change(topic.id, index, Wish(election=how))
    return _NOBODY[how] if after is None else None


def _is_needed(state: PartitionState, how: Election) -> bool:
    if how is Election.PREFERRED:
        return state.leader != state.replicas[0]
    return state.leader == NO_LEADER
