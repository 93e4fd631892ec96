"""Groups and their offsets: what is refused, what goes on with less, and what is hidden."""

from typing import Any

import pytest

from controller.authorization.acl_index import Resource
from controller.metadata.security import Operation
from quorum.core.effects import Reply, Request
from tests.controller.authorization.entries import (
    ALICE,
    HIDDEN,
    HIDDEN_ID,
    HOST,
    SEEN,
    SEEN_ID,
    UNKNOWN_ID,
    Stand,
    acl,
    on_cluster,
    on_group,
)
from wire.capabilities import lacking
from wire.errors import ErrorCode
from wire.messages import group_offsets as offsets
from wire.messages import groups
from wire.primitives import OPERATIONS_OMITTED, ZERO_UUID

O = Operation  # noqa: E741 - as in the modules
NONE = ErrorCode.NONE
GROUP_ERROR = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_ERROR = ErrorCode.TOPIC_AUTHORIZATION_FAILED
MEMBER: dict[str, Any] = {"group_id": SEEN, "member_id": "m"}


@pytest.mark.parametrize(
    "body",
    [
        groups.JoinGroupRequest(
            **MEMBER, session_timeout_ms=1, protocol_type="consumer", protocols=()
        ),
        groups.SyncGroupRequest(**MEMBER, generation_id=1),
        groups.HeartbeatRequest(**MEMBER, generation_id=1),
        groups.LeaveGroupRequest(group_id=SEEN, members=()),
    ],
    ids=lambda body: type(body).__name__,
)
def test_member_may_read_its_group(body: Any) -> None:
    refused: Any = Stand(on_group(O.DESCRIBE), on_group(O.READ, HIDDEN)).ask(body)
    assert refused.error_code is GROUP_ERROR
    assert Stand(on_group(O.READ)).ask(body, "served") == "served"


@pytest.mark.parametrize(
    ("key_type", "kind", "error"),
    [
        (0, Resource.GROUP, GROUP_ERROR),
        (1, Resource.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_coordinators_are_told_in_the_order_of_the_keys(
    key_type: int, kind: Resource, error: ErrorCode
) -> None:
    stand = Stand(acl(O.READ, kind), acl(O.DESCRIBE, kind, "last"))
    asked = groups.FindCoordinatorRequest(
        key_type=key_type, coordinator_keys=(SEEN, HIDDEN, "last")
    )
    found = tuple(groups.FoundCoordinator(key=key, node_id=1) for key in (SEEN, "last"))
    answer: Any = stand.ask(asked, groups.FindCoordinatorResponse(coordinators=found))
    assert [(each.key, each.error_code, each.node_id) for each in answer.coordinators] == [
        (SEEN, NONE, 1),
        (HIDDEN, error, -1),
        ("last", NONE, 1),
    ]
    none: Any = Stand().ask(asked)
    assert {each.error_code for each in none.coordinators} == {error}


def test_coordinators_of_share_groups_are_for_nodes() -> None:
    asked = groups.FindCoordinatorRequest(key_type=2, coordinator_keys=("k",))
    refused: Any = Stand(on_group(O.ALL, "*")).ask(asked)
    assert refused.coordinators[0].error_code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert Stand(on_cluster(O.CLUSTER_ACTION)).ask(asked, "served") == "served"


def test_one_of_two_groups_is_described_with_what_may_be_done_to_it() -> None:
    stand = Stand(on_group(O.READ))
    body = groups.DescribeGroupsRequest(groups=(SEEN, HIDDEN), include_authorized_operations=True)
    described = groups.DescribedGroup(group_id=SEEN, authorized_operations=3400)
    answer: Any = stand.ask(body, groups.DescribeGroupsResponse(groups=(described,)))
    assert isinstance(stand.given, groups.DescribeGroupsRequest)
    assert stand.given.groups == (SEEN,)
    assert {
        each.group_id: (each.error_code, each.authorized_operations) for each in answer.groups
    } == {
        SEEN: (NONE, 1 << O.READ | 1 << O.DESCRIBE),
        HIDDEN: (GROUP_ERROR, OPERATIONS_OMITTED),
    }


@pytest.mark.parametrize(
    ("allowing", "shown"),
    [
        (on_group(O.READ), [SEEN]),
        (on_cluster(O.DESCRIBE), [SEEN, HIDDEN]),
        (on_cluster(O.CREATE), []),
    ],
)
def test_groups_are_listed_that_may_be_described(allowing: Any, shown: list[str]) -> None:
    both = tuple(
        groups.ListedGroup(group_id=name, protocol_type="consumer") for name in (SEEN, HIDDEN)
    )
    answer: Any = Stand(allowing).ask(
        groups.ListGroupsRequest(), groups.ListGroupsResponse(groups=both)
    )
    assert [each.group_id for each in answer.groups] == shown


def test_one_of_two_groups_is_deleted() -> None:
    stand = Stand(on_group(O.DELETE), on_group(O.READ, HIDDEN))
    done = groups.DeletableGroupResult(group_id=SEEN)
    answer: Any = stand.ask(
        groups.DeleteGroupsRequest(groups_names=(HIDDEN, SEEN)),
        groups.DeleteGroupsResponse(results=(done,)),
    )
    assert stand.given == groups.DeleteGroupsRequest(groups_names=(SEEN,))
    assert [(each.group_id, each.error_code) for each in answer.results] == [
        (SEEN, NONE),
        (HIDDEN, GROUP_ERROR),
    ]


# --- their offsets ----------------------------------------------------------------------------


def commit(*names: str) -> offsets.OffsetCommitRequest:
    part = (offsets.OffsetCommitRequestPartition(partition_index=4, committed_offset=1),)
    return offsets.OffsetCommitRequest(
        group_id=SEEN,
        topics=tuple(
            offsets.OffsetCommitRequestTopic(name=name, partitions=part) for name in names
        ),
    )


def test_offsets_of_one_of_two_topics_are_committed() -> None:
    stand = Stand(on_group(O.READ), acl(O.READ))
    answer: Any = stand.ask(commit(SEEN, HIDDEN), offsets.OffsetCommitResponse())
    assert stand.given == commit(SEEN)
    (refused,) = answer.topics
    assert (refused.name, refused.partitions[0].partition_index) == (HIDDEN, 4)
    assert refused.partitions[0].error_code is TOPIC_ERROR


def test_topics_may_be_named_by_their_ids() -> None:
    """One that no topic has, or zero, is for the core to refuse: there is nothing to hide."""
    part = (offsets.OffsetCommitRequestPartition(partition_index=4, committed_offset=1),)
    ids = (SEEN_ID, HIDDEN_ID, UNKNOWN_ID, ZERO_UUID)
    topics = tuple(offsets.OffsetCommitRequestTopic(topic_id=id_, partitions=part) for id_ in ids)
    stand = Stand(on_group(O.READ), acl(O.READ))
    body = offsets.OffsetCommitRequest(group_id=SEEN, topics=topics)
    answer: Any = stand.ask(body, offsets.OffsetCommitResponse())
    assert isinstance(stand.given, offsets.OffsetCommitRequest)
    assert [each.topic_id for each in stand.given.topics] == [SEEN_ID, UNKNOWN_ID, ZERO_UUID]
    assert [(each.topic_id, each.name) for each in answer.topics] == [(HIDDEN_ID, "")]


def test_offsets_of_a_group_that_may_not_be_read_are_not_committed() -> None:
    answer: Any = Stand(on_group(O.DESCRIBE), acl(O.READ, name="*")).ask(commit(SEEN, HIDDEN))
    errors = [each.error_code for topic in answer.topics for each in topic.partitions]
    assert errors == [GROUP_ERROR] * 2


def test_offsets_are_deleted_by_who_may_delete_the_group_and_read_the_topic() -> None:
    part = (offsets.OffsetDeleteRequestPartition(partition_index=0),)
    body = offsets.OffsetDeleteRequest(
        group_id=SEEN, topics=(offsets.OffsetDeleteRequestTopic(name=SEEN, partitions=part),)
    )
    refused: Any = Stand(on_group(O.READ), acl(O.READ)).ask(body)
    assert refused.error_code is GROUP_ERROR
    topicless: Any = Stand(on_group(O.DELETE)).ask(body)
    assert topicless.topics[0].partitions[0].error_code is TOPIC_ERROR
    assert Stand(on_group(O.DELETE), acl(O.READ)).ask(body, "served") == "served"


def group(name: str, *topics: str, is_all: bool = False) -> offsets.OffsetFetchRequestGroup:
    asked = tuple(
        offsets.OffsetFetchRequestTopics(name=each, partition_indexes=(0,)) for each in topics
    )
    return offsets.OffsetFetchRequestGroup(group_id=name, topics=None if is_all else asked)


def committed(name: str, *topics: str, error: ErrorCode = NONE) -> offsets.OffsetFetchResponseGroup:
    part = (offsets.OffsetFetchResponsePartitions(partition_index=0, committed_offset=9),)
    return offsets.OffsetFetchResponseGroup(
        group_id=name,
        error_code=error,
        topics=tuple(
            offsets.OffsetFetchResponseTopics(name=each, partitions=part) for each in topics
        ),
    )


def shown(answer: Any) -> list[tuple[str, ErrorCode, list[tuple[str, ErrorCode]]]]:
    return [
        (
            each.group_id,
            each.error_code,
            [(topic.name, topic.partitions[0].error_code) for topic in each.topics],
        )
        for each in answer.groups
    ]


def test_offsets_are_told_group_by_group_in_order() -> None:
    """What was asked for by name is an error; of all, it is left out."""
    allowed = [on_group(O.DESCRIBE, name) for name in ("a", "c", "broken")]
    stand = Stand(*allowed, acl(O.DESCRIBE))
    asked = (
        group("a", HIDDEN, SEEN),
        group("b", SEEN),
        group("c", is_all=True),
        group("broken", SEEN, HIDDEN),
    )
    answers = (
        committed("a", SEEN),
        committed("c", SEEN, HIDDEN),
        committed("broken", error=ErrorCode.NOT_COORDINATOR),
    )
    answer = stand.ask(
        offsets.OffsetFetchRequest(groups=asked), offsets.OffsetFetchResponse(groups=answers)
    )
    assert stand.given == offsets.OffsetFetchRequest(
        groups=(group("a", SEEN), group("c", is_all=True), group("broken", SEEN))
    )
    assert shown(answer) == [
        ("a", NONE, [(SEEN, NONE), (HIDDEN, TOPIC_ERROR)]),
        ("b", GROUP_ERROR, []),
        ("c", NONE, [(SEEN, NONE)]),
        ("broken", ErrorCode.NOT_COORDINATOR, []),
    ]


def test_old_client_is_told_of_the_group_in_each_partition() -> None:
    body = offsets.OffsetFetchRequest(groups=(group("b", SEEN),))
    request = Request(
        token=1,
        body=body,
        listener="L",
        principal=ALICE,
        client_host=HOST,
        lacking=lacking(type(body), 1),
    )
    refused = Stand().door.admit(request, is_control=False)
    assert isinstance(refused, Reply)
    assert shown(refused.body) == [("b", GROUP_ERROR, [(SEEN, GROUP_ERROR)])]
