"""Reassignments: where clients want replicas to be, and which moves are under way.

A move is recorded as the partition's target; the ISR changes that follow complete it (see
`controller.metadata.election`). The partitions of a request fail or succeed by themselves.

Source: KIP-455, KIP-860; Kafka's ReplicationControlManager. Error messages are Kafka's where its
tools show them.
"""

from uuid import UUID

from controller.config import ControllerConfig
from controller.decisions.decision import CHANGES_MAX, Decision, refused
from controller.decisions.partition_changes import PartitionEditor, election_for
from controller.metadata import placement, reassignment
from controller.metadata.configs import NO_ERROR, Refusal
from controller.metadata.election import Desired, Election
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import RECOVERING, PartitionState
from wire.errors import ErrorCode
from wire.messages import partitions as messages

__all__ = ["decide_alter_reassignments", "list_reassignments"]


# --- alter ----------------------------------------------------------------------------------


def decide_alter_reassignments(
    image: MetadataImage,
    request: messages.AlterPartitionReassignmentsRequest,
    config: ControllerConfig,
) -> Decision[messages.AlterPartitionReassignmentsResponse]:
    if sum(len(topic.partitions) for topic in request.topics) > CHANGES_MAX:
        message = f"One request may reassign {CHANGES_MAX} partitions. Ask for less at a time."
        return refused(request, Refusal(ErrorCode.POLICY_VIOLATION, message))
    editor = PartitionEditor(image, config)
    keeps_factor = not request.allow_replication_factor_change
    responses = tuple(
        messages.ReassignableTopicResponse(
            name=topic.name,
            partitions=tuple(
                _alter(editor, topic.name, asked, keeps_factor=keeps_factor)
                for asked in topic.partitions
            ),
        )
        for topic in request.topics
    )
    response = messages.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, responses=responses
    )
    return Decision(response=response, changes=tuple(editor.changes))


def _alter(
    editor: PartitionEditor, name: str, asked: messages.ReassignablePartition, *, keeps_factor: bool
) -> messages.ReassignablePartitionResponse:
    index, image = asked.partition_index, editor.image
    topic = image.topic(name)
    state = None if topic is None else editor.state(topic.id, index)
    desired: Desired | Refusal
    if topic is None:
        message = f"Unable to find a topic named {name}."
        desired = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    elif state is None:
        message = f"Unable to find partition {name}:{index}."
        desired = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    elif asked.replicas is None:
        how = election_for(image, topic.id, editor.config)
        uses_eligible = image.has_eligible_leaders or not state.isr
        eligible = state.eligible_leader_replicas if uses_eligible else ()
        desired = _cancellation(state, f"{name}:{index}", how, eligible)
    else:
        desired = _move(image, state, asked.replicas, keeps_factor=keeps_factor)
    found = desired if isinstance(desired, Refusal) else NO_ERROR
    if topic is not None and isinstance(desired, Desired):
        editor.change(topic.id, index, desired)
    return found.told(messages.ReassignablePartitionResponse, partition_index=index)


def _check_target(image: MetadataImage, target: tuple[int, ...]) -> Refusal | None:
    """Why a partition cannot be moved there. Brokers may be fenced: the move waits for them."""
    if not target:
        problem = "an empty replica list."
    elif unknown := [broker for broker in sorted(target) if broker not in image.brokers]:
        problem = f"broker {unknown[0]}, but no such broker is registered."
    elif full := [broker for broker in sorted(target) if not image.brokers[broker].takes_replicas]:
        problem = f"broker {full[0]}, but all its log directories are cordoned."
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
) -> Desired | Refusal:
    refusal = _check_target(image, target)
    if refusal is None and keeps_factor:
        refusal = _check_factor(state, target)
    if refusal is not None:
        return refusal

    def directory_on(broker_id: int) -> UUID:
        return placement.directory_on(image.brokers.get(broker_id))

    return Desired(assignment=reassignment.towards(state, target, directory_on))


def _cancellation(
    state: PartitionState, name: str, how: Election, eligible: tuple[int, ...]
) -> Desired | Refusal:
    """Back to the replicas of the beginning. `eligible` may lead though they are not in the ISR.

    If none of them is known to hold every committed record, this may lose some: then it is up to
    the topic whether its replicas may be elected all the same.
    """
    if not reassignment.assignment_of(state).is_moving:
        return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    before = reassignment.reverted(state)
    isr = reassignment.in_replica_order(before, state.isr)
    if isr or reassignment.in_replica_order(before, eligible):
        return Desired(election=how, isr=isr, assignment=before)
    if how is not Election.UNCLEAN:
        message = (
            f"Unable to revert partition assignment for {name} because it would require an "
            f"unclean leader election."
        )
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    isr = before.replicas[:1]
    return Desired(election=how, isr=isr, assignment=before, recovery_state=RECOVERING)


# --- list -----------------------------------------------------------------------------------


def list_reassignments(
    image: MetadataImage, request: messages.ListPartitionReassignmentsRequest
) -> messages.ListPartitionReassignmentsResponse:
    """The reassignments that are under way, of all topics or of those asked for."""
    moving = _moving(image) if request.topics is None else _among(image, request)
    topics = tuple(
        messages.OngoingTopicReassignment(name=name, partitions=tuple(partitions))
        for name, partitions in moving.items()
    )
    return messages.ListPartitionReassignmentsResponse(topics=topics)


_ByTopic = dict[str, list[messages.OngoingPartitionReassignment]]


def _moving(image: MetadataImage) -> _ByTopic:
    found: _ByTopic = {}
    table = image.partitions
    for topic_id, index, state in table.partitions(table.rows_in_reassignment()):
        name = image.topics.by_id[topic_id].name
        found.setdefault(name, []).append(_ongoing(index, state))
    return found


def _among(image: MetadataImage, request: messages.ListPartitionReassignmentsRequest) -> _ByTopic:
    found: _ByTopic = {}
    for asked in request.topics or ():
        topic = image.topic(asked.name)
        for index in () if topic is None else asked.partition_indexes:
            state = None if topic is None else image.partition(topic.id, index)
            if state is not None and reassignment.assignment_of(state).is_moving:
                found.setdefault(asked.name, []).append(_ongoing(index, state))
    return found


def _ongoing(index: int, state: PartitionState) -> messages.OngoingPartitionReassignment:
    return messages.OngoingPartitionReassignment(
        partition_index=index,
        replicas=state.replicas,
        adding_replicas=state.adding_replicas,
        removing_replicas=state.removing_replicas,
    )
