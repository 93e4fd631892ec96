"""What brokers report of replicas: leaders ask for ISRs (AlterPartition), and every broker names
the log directories in which its replicas lie (AssignReplicasToDirs).

`controller.metadata.alter_partition` decides which ISR changes are refused. A broker with several
directories chooses among them itself; the controller has to know that a replica in a directory that
is not online can neither lead nor be in sync.

Source: KIP-497, KIP-858; Kafka's ReplicationControlManager.
"""

from dataclasses import replace
from uuid import UUID

from controller.config import ControllerConfig
from controller.decisions.decision import Decision
from controller.decisions.partition_changes import PartitionEditor, election_for
from controller.metadata import alter_partition
from controller.metadata.election import Desired
from controller.metadata.image import BrokerImage, MetadataImage
from controller.metadata.partitions import PartitionState
from controller.metadata.reassignment import assignment_of
from wire.errors import ErrorCode
from wire.messages import log_dirs as messages
from wire.messages.partitions import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrPartition,
    IsrPartitionResult,
    IsrTopicResult,
)

__all__ = ["decide_alter_partition", "decide_assign_replicas"]


def _missing(image: MetadataImage, topic_id: UUID) -> ErrorCode:
    """The error for an unknown partition."""
    is_known = image.topic_by_id(topic_id) is not None
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_known else ErrorCode.UNKNOWN_TOPIC_ID


# --- ISRs -----------------------------------------------------------------------------------


def decide_alter_partition(
    image: MetadataImage, request: AlterPartitionRequest, config: ControllerConfig
) -> Decision[AlterPartitionResponse]:
    """Change the ISRs of partitions as their leader asks to. Each fails or succeeds by itself.

    A leader that asks for the ISR as it is wants to be sure that a request of before comes too
    late: the partition's epoch is raised. (Apache Kafka's controller records nothing then.)
    """
    if alter_partition.has_stale_broker_epoch(image, request.broker_id, request.broker_epoch):
        return Decision(response=AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    editor = PartitionEditor(image, config)
    topics = tuple(
        IsrTopicResult(
            topic_id=topic.topic_id,
            partitions=tuple(
                _alter(editor, topic.topic_id, asked, request.broker_id)
                for asked in topic.partitions
            ),
        )
        for topic in request.topics
    )
    response = AlterPartitionResponse(topics=topics)
    return Decision(response=response, changes=tuple(editor.changes), is_atomic=False)


def _alter(
    editor: PartitionEditor, topic_id: UUID, asked: IsrPartition, broker_id: int
) -> IsrPartitionResult:
    index = asked.partition_index
    state = editor.state(topic_id, index)
    if state is None:
        error = _missing(editor.image, topic_id)
    else:
        error = alter_partition.refusal(editor.image, state, asked, broker_id=broker_id)
    if state is None or error is not ErrorCode.NONE:
        return IsrPartitionResult(partition_index=index, error_code=error)
    desired = Desired(
        election=election_for(editor.image, topic_id, editor.config),
        isr=alter_partition.requested_isr(state, asked),
        recovery_state=asked.leader_recovery_state,
    )
    after = editor.change(topic_id, index, desired) or editor.confirm(topic_id, index)
    if after.leader != broker_id:
        # The change completed a reassignment that moves the leader away. The error says so, and the
        # change is made all the same.
        return IsrPartitionResult(partition_index=index, error_code=ErrorCode.NEW_LEADER_ELECTED)
    return IsrPartitionResult(
        partition_index=index,
        leader_id=after.leader,
        leader_epoch=after.leader_epoch,
        isr=after.isr,
        leader_recovery_state=after.leader_recovery_state,
        partition_epoch=after.partition_epoch,
    )


# --- directories ----------------------------------------------------------------------------


def decide_assign_replicas(
    image: MetadataImage, request: messages.AssignReplicasToDirsRequest, config: ControllerConfig
) -> Decision[messages.AssignReplicasToDirsResponse]:
    """Record the directories of a broker's replicas. Each fails or succeeds by itself."""
    error = ErrorCode.NONE
    if not image.has_directories:
        error = ErrorCode.UNSUPPORTED_VERSION
    elif alter_partition.has_stale_broker_epoch(image, request.broker_id, request.broker_epoch):
        error = ErrorCode.STALE_BROKER_EPOCH
    if error is not ErrorCode.NONE:
        return Decision(response=messages.AssignReplicasToDirsResponse(error_code=error))
    editor = PartitionEditor(image, config)
    broker = image.brokers[request.broker_id]
    directories = tuple(
        messages.DirectoryResult(
            id_=asked.id_,
            topics=tuple(
                messages.DirectoryTopicResult(
                    topic_id=topic.topic_id,
                    partitions=tuple(
                        _assign(editor, topic.topic_id, each.partition_index, broker, asked.id_)
                        for each in topic.partitions
                    ),
                )
                for topic in asked.topics
            ),
        )
        for asked in request.directories
    )
    response = messages.AssignReplicasToDirsResponse(directories=directories)
    return Decision(response=response, changes=tuple(editor.changes), is_atomic=False)


def _assign(
    editor: PartitionEditor, topic_id: UUID, index: int, broker: BrokerImage, directory: UUID
) -> messages.DirectoryPartitionResult:
    state, error = editor.state(topic_id, index), ErrorCode.NONE
    if state is None:
        error = _missing(editor.image, topic_id)
    elif broker.id not in state.replicas:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        editor.change(topic_id, index, _placed(editor, topic_id, state, broker, directory))
    return messages.DirectoryPartitionResult(partition_index=index, error_code=error)


def _placed(
    editor: PartitionEditor,
    topic_id: UUID,
    state: PartitionState,
    broker: BrokerImage,
    directory: UUID,
) -> Desired:
    slot = state.replicas.index(broker.id)
    directories = (*state.directories[:slot], directory, *state.directories[slot + 1 :])
    assignment = replace(assignment_of(state), directories=directories)
    if broker.has_online(directory):
        return Desired(assignment=assignment)
    isr = tuple(member for member in state.isr if member != broker.id)
    how = election_for(editor.image, topic_id, editor.config)
    return Desired(election=how, isr=isr, assignment=assignment)
