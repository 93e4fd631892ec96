"""AlterPartition: the ISRs that leaders ask for.

Which requests are refused is decided in `controller.metadata.alter_partition`.

Source: KIP-497; Kafka's ReplicationControlManager.
"""

from uuid import UUID

from controller.config import ControllerConfig
from controller.decisions import policies
from controller.decisions.decision import Decision
from controller.decisions.edits import Edits
from controller.metadata import alter_partition
from controller.metadata.election import Wish
from controller.metadata.image import MetadataImage
from wire.errors import ErrorCode
from wire.messages.partitions import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrPartition,
    IsrPartitionResult,
    IsrTopicResult,
)

__all__ = ["decide_alter_partition"]


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
        election=policies.election_for(image, topic_id, config),
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
