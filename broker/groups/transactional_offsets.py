"""Offsets are committed in a transaction (TxnOffsetCommit): by whom, and what is answered.

The rules are pure, and but for the members' checks those of ordinary commits (offsets.py).

Source: KIP-447; Kafka's ClassicGroup.validateOffsetCommit and KafkaApis.
"""

from collections.abc import Mapping
from types import MappingProxyType

from broker.config import GroupConfig
from broker.groups import offsets
from broker.groups.group import Group, GroupState
from broker.groups.offsets import TopicWith
from broker.groups.records import OffsetChange
from broker.verifying import Place
from wire.capabilities import Capability, Lacking
from wire.errors import ErrorCode
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from wire.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

__all__ = ["check_commit", "commit", "names_a_partition", "refused_commit"]


def check_commit(group: Group | None, request: TxnOffsetCommitRequest) -> ErrorCode:
    """May this member, or a producer that names none, commit now?"""
    generation = request.generation_id
    if group is None:
        return ErrorCode.NONE if generation < 0 else ErrorCode.ILLEGAL_GENERATION
    if generation < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    if generation < 0 and not request.member_id and request.group_instance_id is None:
        return ErrorCode.NONE  # a producer from before KIP-447
    return group.check_generation(request.member_id, request.group_instance_id, generation)


def names_a_partition(request: TxnOffsetCommitRequest, topic_with: TopicWith) -> bool:
    """Is there one that exists? Otherwise nobody has to be asked."""
    return any(
        topic_with(topic.name, partition.partition_index) is not None
        for topic in request.topics
        for partition in topic.partitions
    )


def commit(
    request: TxnOffsetCommitRequest,
    config: GroupConfig,
    topic_with: TopicWith,
    now_ms: int,
    stale: Mapping[Place, ErrorCode] = MappingProxyType({}),
) -> tuple[tuple[OffsetChange, ...], TxnOffsetCommitResponse]:
    """Returns the records to be written, and the answer that is due once they are."""
    changes, response = offsets.commit(_ordinary(request), config, topic_with, now_ms, stale)
    return changes, _answer(response)


def refused_commit(
    request: TxnOffsetCommitRequest, error: ErrorCode, lacking: Lacking, topic_with: TopicWith
) -> TxnOffsetCommitResponse:
    """In the words that its version knows."""
    is_loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if is_loading and Capability.KNOWS_LOAD_IN_PROGRESS in lacking:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    is_abortable = error is ErrorCode.TRANSACTION_ABORTABLE
    if is_abortable and Capability.KNOWS_TRANSACTION_ABORTABLE in lacking:
        error = ErrorCode.INVALID_TXN_STATE
    return _answer(offsets.refused_commit(_ordinary(request), error, topic_with))


def _ordinary(request: TxnOffsetCommitRequest) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=request.group_id,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        committed_metadata=partition.committed_metadata,
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _answer(response: OffsetCommitResponse) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in response.topics
            if topic.partitions
        ),
    )
