"""Requests of the consumer protocol (KIP-848): READ of the group, and DESCRIBE of its topics.

A member asks for topics by name, and may not ask for one that it may not see. Of those that match
its pattern it is given what it may see. Kafka leaves them out for all members: there whoever asks
first decides.

Source: Kafka's KafkaApis, handleConsumerGroupHeartbeat and handleConsumerGroupDescribe.
"""

from collections.abc import Iterator, Mapping

from controller.authorization.access import (
    GROUP_DENIED,
    TOPIC_DENIED,
    Access,
    Narrowed,
    Refused,
    Rule,
    Verdict,
    refused,
)
from controller.authorization.acl_index import Resource
from controller.metadata.security import Operation
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
    DescribedMember,
)

__all__ = ["RULES"]

_UNSEEN = "The group has described topic(s) that the client is not authorized to describe."


def _heartbeat(access: Access, body: ConsumerGroupHeartbeatRequest) -> Verdict:
    if not access.may(Operation.READ, Resource.GROUP, body.group_id):
        return refused(body, GROUP_DENIED)
    names = body.subscribed_topic_names or ()
    _, denied = access.split(Operation.DESCRIBE, Resource.TOPIC, names, lambda each: each)
    if denied:
        return refused(body, TOPIC_DENIED)

    def amend(answer: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
        if answer.assignment is None:
            return answer
        seen, hidden = access.split(
            Operation.DESCRIBE,
            Resource.TOPIC,
            answer.assignment.topic_partitions,
            lambda each: access.topic_name(None, each.topic_id),
        )
        if not hidden:
            return answer
        return replace(answer, assignment=replace(answer.assignment, topic_partitions=seen))

    return Narrowed(body, amend)


def _describe(access: Access, body: ConsumerGroupDescribeRequest) -> Verdict:
    allowed, denied = access.split(
        Operation.DESCRIBE, Resource.GROUP, body.group_ids, lambda each: each
    )
    denials = tuple(GROUP_DENIED.told(DescribedConsumerGroup, group_id=each) for each in denied)
    if not allowed:
        return Refused(ConsumerGroupDescribeResponse(groups=denials))

    def amend(answer: ConsumerGroupDescribeResponse) -> ConsumerGroupDescribeResponse:
        shown = tuple(
            _shown(access, each, told=body.include_authorized_operations) for each in answer.groups
        )
        return replace(answer, groups=(*denials, *shown))

    return Narrowed(replace(body, group_ids=allowed) if denied else body, amend)


def _shown(access: Access, group: DescribedConsumerGroup, *, told: bool) -> DescribedConsumerGroup:
    if group.error_code is not ErrorCode.NONE:
        return group
    names = tuple(dict.fromkeys(name for each in group.members for name in _topics(each)))
    _, hidden = access.split(Operation.DESCRIBE, Resource.TOPIC, names, lambda each: each)
    if hidden:
        return DescribedConsumerGroup(
            group_id=group.group_id, error_code=TOPIC_DENIED.error_code, error_message=_UNSEEN
        )
    if not told:
        return group
    operations = access.subject.operations(Resource.GROUP, group.group_id)
    return replace(group, authorized_operations=operations)


def _topics(member: DescribedMember) -> Iterator[str]:
    yield from member.subscribed_topic_names
    for assignment in (member.assignment, member.target_assignment):
        yield from (each.topic_name for each in assignment.topic_partitions)


RULES: Mapping[type, Rule] = {
    ConsumerGroupDescribeRequest: _describe,
    ConsumerGroupHeartbeatRequest: _heartbeat,
}
