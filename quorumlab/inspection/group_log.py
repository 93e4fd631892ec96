"""The records of `__consumer_offsets`, told by the names that Kafka's decoder uses.

Source: Kafka's DumpLogSegments with --offsets-decoder; CoordinatorRecordType.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, assert_never

from broker.groups.consumer.consumer_records import by_topic
from broker.groups.consumer.consumer_values import (
    Current,
    CurrentChange,
    EpochChange,
    PatternChange,
    SubscriptionChange,
    TargetChange,
    TargetEpochChange,
    TopicPartition,
)
from broker.groups.records import (
    Change,
    CommittedOffset,
    GroupChange,
    GroupMetadata,
    OffsetChange,
    decode_change,
)
from quorumlab.inspection.batches import Batch
from quorumlab.inspection.coordinator_log import Told, coordinator_lines
from quorumlab.inspection.partition_log import Line
from wire.batch import Record
from wire.primitives import uuid_text

__all__ = ["group_lines"]


def group_lines(batch: Batch) -> Iterator[Line]:
    """An offset in a transaction has the id of its producer."""
    is_pending = batch.header.is_transactional
    producer = {"producerId": batch.header.producer_id} if is_pending else {}

    def tell(record: Record) -> Told | None:
        change = decode_change(record)
        if change is None:
            return None
        type_, fields = _told(change)
        return type_, {"group": change.group_id, **fields, **producer}

    return coordinator_lines(batch, tell)


def _told(change: Change) -> Told:
    """What is gone has nothing but its names."""
    match change:
        case OffsetChange(topic=topic, partition=index, committed=committed):
            place = {"topic": topic, "partition": index}
            return "OFFSET_COMMIT", {**place, **_committed(committed)}
        case GroupChange(metadata=metadata):
            return "GROUP_METADATA", _generation(metadata)
        case EpochChange(epoch=epoch):
            hash_ = {} if epoch is None else {"metadataHash": change.metadata_hash}
            return "CONSUMER_GROUP_METADATA", _unless_gone(epoch=epoch, **hash_)
        case SubscriptionChange(member_id=member_id):
            return "CONSUMER_GROUP_MEMBER_METADATA", {"memberId": member_id, **_said(change)}
        case TargetEpochChange(epoch=epoch):
            name = "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA"
            return name, _unless_gone(assignmentEpoch=epoch)
        case TargetChange(member_id=member_id, partitions=partitions):
            target = {} if partitions is None else {"topicPartitions": _places(partitions)}
            return "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER", {"memberId": member_id, **target}
        case CurrentChange(member_id=member_id, current=current):
            name = "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT"
            return name, {"memberId": member_id, **_current(current)}
        case PatternChange(pattern=pattern, resolved=resolved):
            topics = {} if resolved is None else {"topics": list(resolved.topics)}
            return "CONSUMER_GROUP_REGULAR_EXPRESSION", {"regularExpression": pattern, **topics}
        case _:
            assert_never(change)


def _unless_gone(**fields: Any) -> Mapping[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _committed(found: CommittedOffset | None) -> Mapping[str, Any]:
    if found is None:
        return {}
    return {
        "offset": found.offset,
        "leaderEpoch": found.leader_epoch,
        "metadata": found.metadata,
        "commitTimestamp": found.commit_timestamp_ms,
    }


def _generation(found: GroupMetadata | None) -> Mapping[str, Any]:
    if found is None:
        return {}
    return {
        "protocolType": found.protocol_type,
        "generation": found.generation,
        "protocol": found.protocol,
        "leader": found.leader,
        "members": [
            {"memberId": member.id, "groupInstanceId": member.instance_id}
            for member in found.members
        ],
    }


def _said(change: SubscriptionChange) -> Mapping[str, Any]:
    said = change.subscription
    if said is None:
        return {}
    return {
        "instanceId": said.instance_id,
        "clientId": said.client_id,
        "clientHost": said.client_host,
        "subscribedTopicNames": list(said.topic_names),
        "subscribedTopicRegex": said.topic_pattern,
        "rebalanceTimeoutMs": said.rebalance_timeout_ms,
        "serverAssignor": said.assignor,
        "classic": change.classic is not None,
    }


def _current(found: Current | None) -> Mapping[str, Any]:
    if found is None:
        return {}
    return {
        "memberEpoch": found.epoch,
        "previousMemberEpoch": found.previous_epoch,
        "state": found.state.name,
        "assignedPartitions": _places(found.assigned),
        "partitionsPendingRevocation": _places(found.revoking),
    }


def _places(partitions: Iterable[TopicPartition]) -> Mapping[str, list[int]]:
    """By topic id."""
    found = by_topic(partitions)
    return {uuid_text(topic_id): list(indexes) for topic_id, indexes in found.items()}
