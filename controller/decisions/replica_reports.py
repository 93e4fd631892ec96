"""AlterPartition: the ISRs that leaders ask for.

Which requests are refused is decided in `controller.metadata.alter_partition`.

Source: KIP-497; Kafka's ReplicationControlManager.

Directories: in which of its log directories a broker keeps a replica, as the broker tells it.

The controller leaves the choice to brokers that have several. What it must know of it: a replica
in a directory that is not online can neither lead nor be in sync.

Source: KIP-858; Kafka's ReplicationControlManager.
"""

from dataclasses import replace
from uuid import UUID

from controller.config import ControllerConfig
from controller.decisions import partition_changes
from controller.decisions.decision import Decision
from controller.decisions.partition_changes import Edits
from controller.metadata import alter_partition
from controller.metadata.alter_partition import has_stale_broker_epoch
from controller.metadata.election import Election, Wish
from controller.metadata.image import BrokerImage, MetadataImage
from controller.metadata.partitions import PartitionState
from controller.metadata.reassignment import Assignment, assignment_of
from wire.errors import ErrorCode
from wire.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    DirectoryPartitionResult,
    DirectoryResult,
    DirectoryTopicResult,
)
from wire.messages.partitions import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrPartition,
    IsrPartitionResult,
    IsrTopicResult,
)

__all__ = ["decide_alter_partition", "decide_assign_replicas"]


def decide_alter_partition(
    image: MetadataImage, request: AlterPartitionRequest, config: ControllerConfig
) -> Decision[AlterPartitionResponse]:
    """Change the ISRs that the leader of some partitions asks to; each by itself."""
    if alter_partition.has_stale_broker_epoch(image, request.broker_id, request.broker_epoch):
        return Decision(response=AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    edits = Edits(image, config)
    topics = tuple(
        IsrTopicResult(
            topic_id=topic.topic_id,
            partitions=tuple(
                _alter(image, edits, topic.topic_id, asked, request.broker_id, config)
                for asked in topic.partitions
            ),
        )
        for topic in request.topics
    )
    response = AlterPartitionResponse(topics=topics)
    return Decision(response=response, changes=tuple(edits.changes), is_atomic=False)


def _alter(
    image: MetadataImage,
    edits: Edits,
    topic_id: UUID,
    asked: IsrPartition,
    broker_id: int,
    config: ControllerConfig,
) -> IsrPartitionResult:
    index = asked.partition_index
    state = edits.state(topic_id, index)
    if state is None:
        known = image.topic_by_id(topic_id) is not None
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.UNKNOWN_TOPIC_ID
        return IsrPartitionResult(partition_index=index, error_code=missing)
    error = alter_partition.refusal(image, state, asked, broker_id=broker_id)
    if error is not ErrorCode.NONE:
        return IsrPartitionResult(partition_index=index, error_code=error)
    wish = Wish(
        election=partition_changes.election_for(image, topic_id, config),
        isr=alter_partition.requested_isr(state, asked),
        recovery_state=asked.leader_recovery_state,
    )
    after = edits.change(topic_id, index, wish) or state
    if after.leader != broker_id:
        # It completed a reassignment that moves the leader away: done, and said by an error.
        return IsrPartitionResult(partition_index=index, error_code=ErrorCode.NEW_LEADER_ELECTED)
    return IsrPartitionResult(
        partition_index=index,
        leader_id=after.leader,
        leader_epoch=after.leader_epoch,
        isr=after.isr,
        leader_recovery_state=after.leader_recovery_state,
        partition_epoch=after.partition_epoch,
    )


def decide_assign_replicas(
    image: MetadataImage, request: AssignReplicasToDirsRequest, config: ControllerConfig
) -> Decision[AssignReplicasToDirsResponse]:
    """Note where a broker keeps some of its replicas; each by itself."""
    error = ErrorCode.NONE
    if not image.has_directories:
        error = ErrorCode.UNSUPPORTED_VERSION
    elif has_stale_broker_epoch(image, request.broker_id, request.broker_epoch):
        error = ErrorCode.STALE_BROKER_EPOCH
    if error is not ErrorCode.NONE:
        return Decision(response=AssignReplicasToDirsResponse(error_code=error))
    edits = Edits(image, config)
    broker = image.brokers[request.broker_id]
    directories = tuple(_assign(image, edits, broker, item, config) for item in request.directories)
    response = AssignReplicasToDirsResponse(directories=directories)
    return Decision(response=response, changes=tuple(edits.changes), is_atomic=False)


def _assign(
    image: MetadataImage,
    edits: Edits,
    broker: BrokerImage,
    asked: DirectoryData,
    config: ControllerConfig,
) -> DirectoryResult:
    results = []
    for topic in asked.topics:
        topic_id = topic.topic_id
        partitions = []
        for partition in topic.partitions:
            index = partition.partition_index
            error = _refusal(image, edits, topic_id, index, broker)
            if error is ErrorCode.NONE:
                wish = _wish(image, edits, (topic_id, index), broker, asked.id_, config)
                edits.change(topic_id, index, wish)
            partitions.append(DirectoryPartitionResult(partition_index=index, error_code=error))
        results.append(DirectoryTopicResult(topic_id=topic_id, partitions=tuple(partitions)))
    return DirectoryResult(id_=asked.id_, topics=tuple(results))


def _refusal(
    image: MetadataImage, edits: Edits, topic_id: UUID, index: int, broker: BrokerImage
) -> ErrorCode:
    if image.topic_by_id(topic_id) is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    state = edits.state(topic_id, index)
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker.id in state.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _wish(
    image: MetadataImage,
    edits: Edits,
    key: tuple[UUID, int],
    broker: BrokerImage,
    directory: UUID,
    config: ControllerConfig,
) -> Wish:
    state = edits.state(*key)
    assert state is not None, key
    assignment = _moved(state, broker.id, directory)
    if broker.has_online(directory):
        return Wish(assignment=assignment)
    isr = tuple(member for member in state.isr if member != broker.id)
    how: Election = partition_changes.election_for(image, key[0], config)
    return Wish(election=how, isr=isr, assignment=assignment)


def _moved(state: PartitionState, broker_id: int, directory: UUID) -> Assignment:
    place = state.replicas.index(broker_id)
    before = state.directories
    return replace(
        assignment_of(state), directories=(*before[:place], directory, *before[place + 1 :])
    )
