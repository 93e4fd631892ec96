"""Reassignments: where clients want replicas to be, and which moves are under way.

A move is recorded as a wish; the ISR changes that follow it complete it (see
`controller.metadata.election`). Partitions of a request fail or succeed by themselves.

Source: KIP-455, KIP-860; Kafka's ReplicationControlManager. Error messages are Kafka's where its
tools show them.
"""

from collections.abc import Iterable
from uuid import UUID

from controller import refusals
from controller.config import ControllerConfig
from controller.decisions import partition_changes
from controller.decisions.decision import CHANGES_MAX, Decision
from controller.decisions.partition_changes import Edits
from controller.metadata import placement, reassignment
from controller.metadata.configs import Refusal
from controller.metadata.election import Election, Wish
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import RECOVERING, PartitionState
from wire.errors import ErrorCode
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

__all__ = ["decide_alter_reassignments", "list_reassignments"]


# --- alter ----------------------------------------------------------------------------------


def decide_alter_reassignments(
    image: MetadataImage, request: AlterPartitionReassignmentsRequest, config: ControllerConfig
) -> Decision[AlterPartitionReassignmentsResponse]:
    """Begin, redirect or cancel reassignments."""
    if sum(len(topic.partitions) for topic in request.topics) > CHANGES_MAX:
        message = f"One request may reassign {CHANGES_MAX} partitions. Ask for less at a time."
        refused = refusals.alter_partition_reassignments(
            request, ErrorCode.POLICY_VIOLATION, message
        )
        return Decision(response=refused)
    edits = Edits(image, config)
    responses = tuple(
        ReassignableTopicResponse(
            name=topic.name,
            partitions=tuple(
                _result(asked, _alter(image, edits, topic.name, asked, request, config))
                for asked in topic.partitions
            ),
        )
        for topic in request.topics
    )
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=responses,
    )
    return Decision(response=response, changes=tuple(edits.changes))


def _result(asked: ReassignablePartition, refusal: Refusal | None) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=asked.partition_index,
        error_code=ErrorCode.NONE if refusal is None else refusal.error_code,
        error_message=None if refusal is None else refusal.message or None,
    )


def _alter(
    image: MetadataImage,
    edits: Edits,
    name: str,
    asked: ReassignablePartition,
    request: AlterPartitionReassignmentsRequest,
    config: ControllerConfig,
) -> Refusal | None:
    topic = image.topic(name)
    if topic is None:
        message = f"Unable to find a topic named {name}."
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    state = edits.state(topic.id, asked.partition_index)
    if state is None:
        message = f"Unable to find partition {name}:{asked.partition_index}."
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if asked.replicas is None:
        how = partition_changes.election_for(image, topic.id, config)
        uses_eligible = image.has_eligible_leaders or not state.isr
        eligible = state.eligible_leader_replicas if uses_eligible else ()
        where = f"{name}:{asked.partition_index}"
        wish: Wish | Refusal = _cancellation(state, where, how, eligible)
    else:
        keeps_factor = not request.allow_replication_factor_change
        wish = _move(image, state, asked.replicas, keeps_factor=keeps_factor)
    if isinstance(wish, Refusal):
        return wish
    edits.change(topic.id, asked.partition_index, wish)
    return None


def _check_target(image: MetadataImage, target: tuple[int, ...]) -> Refusal | None:
    """Why a partition cannot be moved there. Brokers may be fenced: the move waits for them."""
    if not target:
        problem = "an empty replica list."
    elif unknown := [broker for broker in sorted(target) if broker not in image.brokers]:
        problem = f"broker {unknown[0]}, but no such broker is registered."
    elif twice := [broker for broker in sorted(target) if target.count(broker) > 1]:
        problem = f"the broker {twice[0]} more than once."
    else:
        return None
    message = f"The manual partition assignment includes {problem}"
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _check_factor(state: PartitionState, target: tuple[int, ...]) -> Refusal | None:
    """KIP-860: a client that means to move replicas does not add or lose any by accident."""
    factor = len(reassignment.assignment_of(state).staying)
    if factor == len(target):
        return None
    message = f"The replication factor is changed from {factor} to {len(target)}"
    return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)


def _move(
    image: MetadataImage, state: PartitionState, target: tuple[int, ...], *, keeps_factor: bool
) -> Wish | Refusal:
    refusal = _check_target(image, target)
    if refusal is None and keeps_factor:
        refusal = _check_factor(state, target)
    if refusal is not None:
        return refusal

    def directory_on(broker_id: int) -> UUID:
        return placement.directory_on(image.brokers.get(broker_id))

    return Wish(assignment=reassignment.towards(state, target, directory_on))


def _cancellation(
    state: PartitionState, name: str, how: Election, eligible: tuple[int, ...]
) -> Wish | Refusal:
    """Back to the replicas of the beginning. `eligible` may lead though they are not in the ISR.

    If none of them is known to hold every committed record, this may lose some: then it is up to
    the topic whether its replicas may be elected all the same.
    """
    if not reassignment.assignment_of(state).is_moving:
        return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "")
    before = reassignment.reverted(state)
    isr = reassignment.in_replica_order(before, state.isr)
    if isr or reassignment.in_replica_order(before, eligible):
        return Wish(election=how, isr=isr, assignment=before)
    if how is not Election.UNCLEAN:
        message = (
            f"Unable to revert partition assignment for {name} because it would require an "
            f"unclean leader election."
        )
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    isr = before.replicas[:1]
    return Wish(election=how, isr=isr, assignment=before, recovery_state=RECOVERING)


# --- list -----------------------------------------------------------------------------------


def list_reassignments(
    image: MetadataImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """The reassignments that are under way, of all topics or of those asked for."""
    moving = _moving(image) if request.topics is None else _among(image, request)
    topics = tuple(
        OngoingTopicReassignment(name=name, partitions=tuple(partitions))
        for name, partitions in moving.items()
    )
    return ListPartitionReassignmentsResponse(topics=topics)


_ByTopic = dict[str, list[OngoingPartitionReassignment]]


def _moving(image: MetadataImage) -> _ByTopic:
    found: _ByTopic = {}
    for row in image.partitions.rows_in_reassignment().tolist():
        place = image.partitions.place(row)
        assert place is not None, f"row {row} is free but has replicas"
        topic_id, index = place
        name = image.topics.by_id[topic_id].name
        found.setdefault(name, []).append(_ongoing(index, image.partitions.state(row)))
    return found


def _among(image: MetadataImage, request: ListPartitionReassignmentsRequest) -> _ByTopic:
    found: _ByTopic = {}
    for asked in request.topics or ():
        topic = image.topic(asked.name)
        states = () if topic is None else _states(image, topic.id, asked.partition_indexes)
        for index, state in states:
            if reassignment.assignment_of(state).is_moving:
                found.setdefault(asked.name, []).append(_ongoing(index, state))
    return found


def _states(
    image: MetadataImage, topic_id: UUID, indexes: Iterable[int]
) -> Iterable[tuple[int, PartitionState]]:
    for index in indexes:
        state = image.partition(topic_id, index)
        if state is not None:
            yield index, state


def _ongoing(index: int, state: PartitionState) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=index,
        replicas=state.replicas,
        adding_replicas=state.adding_replicas,
        removing_replicas=state.removing_replicas,
    )
