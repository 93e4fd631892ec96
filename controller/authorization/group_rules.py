"""Requests about groups and their offsets: a group wants READ of its members.

Who may describe the cluster sees all groups; who may not, those that he may describe.

Source: Kafka's KafkaApis; KIP-211, KIP-430, KIP-709.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from controller.authorization.access import (
    CLUSTER_DENIED,
    GROUP_DENIED,
    TOPIC_DENIED,
    TRANSACTIONAL_ID_DENIED,
    Access,
    Narrowed,
    Refused,
    Rule,
    Verdict,
    by_topic,
    narrowed,
    refused,
)
from controller.authorization.acl_index import Resource
from controller.metadata.security import Operation
from wire.capabilities import Capability
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from wire.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    ListGroupsResponse,
    SyncGroupRequest,
)

__all__ = ["RULES"]

_GROUP_ERROR = GROUP_DENIED.error_code
_TOPIC_ERROR = TOPIC_DENIED.error_code
_COORDINATED = {  # by FindCoordinator's key types
    0: (Resource.GROUP, GROUP_DENIED),
    1: (Resource.TRANSACTIONAL_ID, TRANSACTIONAL_ID_DENIED),
}
_OF_NODES = 2  # the key type of share groups, which only brokers ask for


def _member(access: Access, body: Any) -> Verdict:
    may = access.may(Operation.READ, Resource.GROUP, body.group_id)
    return None if may else refused(body, GROUP_DENIED)


def _find_coordinator(access: Access, body: FindCoordinatorRequest) -> Verdict:
    if body.key_type == _OF_NODES and not access.may_cluster(Operation.CLUSTER_ACTION):
        return refused(body, CLUSTER_DENIED)
    if body.key_type not in _COORDINATED:
        return None
    kind, denial = _COORDINATED[body.key_type]
    allowed, denied = access.split(
        Operation.DESCRIBE, kind, body.coordinator_keys, lambda each: each
    )
    if not denied:
        return None
    if not allowed:
        return refused(body, denial)
    denials = tuple(denial.told(FoundCoordinator, key=key) for key in denied)

    def amend(answer: FindCoordinatorResponse) -> FindCoordinatorResponse:
        found = {each.key: each for each in (*answer.coordinators, *denials)}
        in_order = tuple(found[key] for key in body.coordinator_keys if key in found)
        return replace(answer, coordinators=in_order)

    return Narrowed(replace(body, coordinator_keys=allowed), amend)


# --- groups -----------------------------------------------------------------------------------


def _describe(access: Access, body: DescribeGroupsRequest) -> Verdict:
    allowed, denied = access.split(
        Operation.DESCRIBE, Resource.GROUP, body.groups, lambda each: each
    )
    denials = tuple(DescribedGroup(group_id=each, error_code=_GROUP_ERROR) for each in denied)
    if not allowed:
        return Refused(DescribeGroupsResponse(groups=denials))
    if not denied and not body.include_authorized_operations:
        return None

    def amend(answer: DescribeGroupsResponse) -> DescribeGroupsResponse:
        groups = answer.groups
        if body.include_authorized_operations:
            groups = tuple(_with_operations(access, each) for each in groups)
        return replace(answer, groups=(*denials, *groups))

    return Narrowed(replace(body, groups=allowed) if denied else body, amend)


def _with_operations(access: Access, group: DescribedGroup) -> DescribedGroup:
    if group.error_code is not ErrorCode.NONE:
        return group
    operations = access.subject.operations(Resource.GROUP, group.group_id)
    return replace(group, authorized_operations=operations)


def _list(access: Access, body: ListGroupsRequest) -> Verdict:
    if access.may_any(Operation.DESCRIBE):
        return None

    def amend(answer: ListGroupsResponse) -> ListGroupsResponse:
        shown, _ = access.split(
            Operation.DESCRIBE, Resource.GROUP, answer.groups, lambda each: each.group_id
        )
        return replace(answer, groups=shown)

    return Narrowed(body, amend)


def _delete(access: Access, body: DeleteGroupsRequest) -> Verdict:
    allowed, denied = access.split(
        Operation.DELETE, Resource.GROUP, body.groups_names, lambda each: each
    )
    denials = tuple(
        DeletableGroupResult(group_id=each, error_code=_GROUP_ERROR)
        for each in dict.fromkeys(denied)
    )
    return narrowed(body, "groups_names", allowed, DeleteGroupsResponse, "results", denials)


# --- their offsets ----------------------------------------------------------------------------


def _name_of(access: Access, topic: Any) -> str | None:
    """None: it is named by an id, and no topic has that."""
    by_id = Capability.NAMES_TOPICS_BY_ID not in access.lacking
    is_nowhere = by_id and not topic.name and not topic.topic_id.int
    return None if is_nowhere else access.name_of(topic)


def _commit(access: Access, body: OffsetCommitRequest) -> Verdict:
    if not access.may(Operation.READ, Resource.GROUP, body.group_id):
        return refused(body, GROUP_DENIED)
    allowed, denied = access.split(
        Operation.READ, Resource.TOPIC, body.topics, partial(_name_of, access)
    )
    denials = tuple(replace(_unchanged(each), topic_id=each.topic_id) for each in denied)
    return narrowed(body, "topics", allowed, OffsetCommitResponse, "topics", denials)


def _unchanged(topic: Any) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetCommitResponsePartition(
                partition_index=each.partition_index, error_code=_TOPIC_ERROR
            )
            for each in topic.partitions
        ),
    )


_of_deleted = by_topic(Operation.READ, OffsetDeleteResponse, _unchanged)


def _delete_offsets(access: Access, body: OffsetDeleteRequest) -> Verdict:
    may = access.may(Operation.DELETE, Resource.GROUP, body.group_id)
    return _of_deleted(access, body) if may else refused(body, GROUP_DENIED)


def _fetch(access: Access, body: OffsetFetchRequest) -> Verdict:
    allowed, denied = access.split(
        Operation.DESCRIBE, Resource.GROUP, body.groups, lambda each: each.group_id
    )
    if not allowed:
        groups = tuple(_unfetched_group(access, each) for each in denied)
        return Refused(OffsetFetchResponse(groups=groups))
    narrower: list[OffsetFetchRequestGroup] = []
    unseen: dict[str, tuple[OffsetFetchRequestTopics, ...]] = {}
    for group in allowed:
        seen, unseen[group.group_id] = access.split(
            Operation.DESCRIBE, Resource.TOPIC, group.topics or (), partial(_name_of, access)
        )
        narrower.append(group if group.topics is None else replace(group, topics=seen))

    def amend(answer: OffsetFetchResponse) -> OffsetFetchResponse:
        answers = iter(answer.groups)
        return replace(
            answer,
            groups=tuple(
                _shown(access, next(answers), unseen[group.group_id])
                if group.group_id in unseen
                else _unfetched_group(access, group)
                for group in body.groups
            ),
        )

    return Narrowed(replace(body, groups=tuple(narrower)), amend)


def _shown(
    access: Access,
    group: OffsetFetchResponseGroup,
    unseen: tuple[OffsetFetchRequestTopics, ...],
) -> OffsetFetchResponseGroup:
    """What was not asked for by name is left out; what was is an error."""
    if group.error_code is not ErrorCode.NONE:
        return group
    seen, _ = access.split(
        Operation.DESCRIBE, Resource.TOPIC, group.topics, partial(_name_of, access)
    )
    return replace(group, topics=(*seen, *(_unfetched(each, _TOPIC_ERROR) for each in unseen)))


def _unfetched_group(access: Access, group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    topics: tuple[OffsetFetchResponseTopics, ...] = ()
    if Capability.TAKES_ERROR_OF_GROUP in access.lacking:
        topics = tuple(_unfetched(each, _GROUP_ERROR) for each in group.topics or ())
    return OffsetFetchResponseGroup(group_id=group.group_id, error_code=_GROUP_ERROR, topics=topics)


def _unfetched(topic: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetFetchResponsePartitions(partition_index=index, error_code=error)
            for index in topic.partition_indexes
        ),
    )


RULES: Mapping[type, Rule] = {
    DeleteGroupsRequest: _delete,
    DescribeGroupsRequest: _describe,
    FindCoordinatorRequest: _find_coordinator,
    HeartbeatRequest: _member,
    JoinGroupRequest: _member,
    LeaveGroupRequest: _member,
    ListGroupsRequest: _list,
    OffsetCommitRequest: _commit,
    OffsetDeleteRequest: _delete_offsets,
    OffsetFetchRequest: _fetch,
    SyncGroupRequest: _member,
}
