"""Groups of the consumer protocol: who may be a member, and what is hidden of topics."""

from typing import Any

import pytest

from controller.metadata.security import Operation
from tests.controller.authorization.entries import (
    HIDDEN,
    HIDDEN_ID,
    SEEN,
    SEEN_ID,
    Stand,
    acl,
    on_group,
)
from wire.errors import ErrorCode
from wire.messages.consumer_groups import (
    AssignedPartitions,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedAssignment,
    DescribedConsumerGroup,
    DescribedMember,
    MemberAssignment,
)

O = Operation  # noqa: E741 - as in the modules
GROUP_ERROR = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_ERROR = ErrorCode.TOPIC_AUTHORIZATION_FAILED
EMPTY = DescribedAssignment()


def beat(*names: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=SEEN, member_id="m", member_epoch=0, subscribed_topic_names=names
    )


def test_member_may_read_its_group_and_see_the_topics_that_it_names() -> None:
    no_group: Any = Stand(on_group(O.DESCRIBE), acl(O.DESCRIBE)).ask(beat(SEEN))
    assert no_group.error_code is GROUP_ERROR
    stand = Stand(on_group(O.READ), acl(O.DESCRIBE))
    refused: Any = stand.ask(beat(SEEN, HIDDEN))
    assert (refused.error_code, stand.given) == (TOPIC_ERROR, None)
    answer = ConsumerGroupHeartbeatResponse(member_epoch=1)
    assert stand.ask(beat(SEEN), answer) == answer


def test_member_is_not_given_what_matches_its_pattern_and_is_hidden_from_it() -> None:
    both = tuple(AssignedPartitions(topic_id=id_, partitions=(0,)) for id_ in (SEEN_ID, HIDDEN_ID))
    answer = ConsumerGroupHeartbeatResponse(assignment=MemberAssignment(topic_partitions=both))
    told: Any = Stand(on_group(O.READ), acl(O.DESCRIBE)).ask(beat(), answer)
    assert told.assignment.topic_partitions == both[:1]


@pytest.mark.parametrize(("topic", "error"), [(SEEN, ErrorCode.NONE), (HIDDEN, TOPIC_ERROR)])
def test_group_is_described_to_who_may_see_all_of_its_topics(topic: str, error: ErrorCode) -> None:
    stand = Stand(on_group(O.DESCRIBE), acl(O.DESCRIBE))
    body = ConsumerGroupDescribeRequest(
        group_ids=(SEEN, HIDDEN), include_authorized_operations=True
    )
    member = DescribedMember(
        member_id="m",
        member_epoch=1,
        client_id="",
        client_host="",
        subscribed_topic_names=(topic,),
        assignment=EMPTY,
        target_assignment=EMPTY,
    )
    described = DescribedConsumerGroup(group_id=SEEN, members=(member,))
    answer: Any = stand.ask(body, ConsumerGroupDescribeResponse(groups=(described,)))
    told = {each.group_id: each for each in answer.groups}
    assert told[HIDDEN].error_code is GROUP_ERROR
    assert told[SEEN].error_code is error
    assert len(told[SEEN].members) == int(error is ErrorCode.NONE)
    if error is ErrorCode.NONE:
        assert told[SEEN].authorized_operations == 1 << O.DESCRIBE
