"""Coordinators on real brokers: what is answered when, and what survives a change of leader."""

from typing import Any

import pytest

from broker.config import GroupConfig
from broker.groups.offsets_topic import OFFSETS_TOPIC
from tests.broker.brokers import Brokers, batch_of
from tests.broker.groups.scenes import SUBSCRIPTION
from wire.batch import records_of
from wire.errors import ErrorCode
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from wire.messages.metadata import MetadataRequest
from wire.messages.topics import CreateTopicsRequest

NONE = ErrorCode.NONE
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
NOT_HERE = ErrorCode.NOT_COORDINATOR
SESSION_MS = 10_000


@pytest.fixture
def brokers() -> Brokers:
    """Broker 1 coordinates all groups; 2 and 3 are in sync."""
    running = Brokers(
        3,
        replica_lag_time_max_ms=1000,
        groups=GroupConfig(initial_rebalance_delay_ms=0, retention_check_interval_ms=1000),
    ).start()
    running.create_topic("t", (1, 2, 3))
    running.create_topic(OFFSETS_TOPIC, (1, 2, 3))
    running.run(600)  # the fetches of followers that began before are over
    return running


def commit(
    brokers: Brokers, offset: int, *, at: int = 1, group_id: str = "g", topic: str = "t"
) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = (OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
    return brokers.ask(at, OffsetCommitRequest(group_id=group_id, topics=topics))


def commit_error(brokers: Brokers, token: int) -> ErrorCode:
    error: ErrorCode = brokers.answer(token).topics[0].partitions[0].error_code
    return error


def fetch(brokers: Brokers, *, at: int = 1, group_id: str = "g", stable: bool = False) -> int:
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    group = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
    return brokers.ask(at, OffsetFetchRequest(groups=(group,), require_stable=stable))


def fetched(brokers: Brokers, token: int) -> int | ErrorCode:
    (group,) = brokers.answer(token).groups
    if group.error_code is not NONE:
        error: ErrorCode = group.error_code
        return error
    offset: int = group.topics[0].partitions[0].committed_offset
    return offset


def deleted(brokers: Brokers) -> ErrorCode:
    """The answer to OffsetDelete of the group's only offset."""
    partitions = (OffsetDeleteRequestPartition(partition_index=0),)
    topics = (OffsetDeleteRequestTopic(name="t", partitions=partitions),)
    token = brokers.ask(1, OffsetDeleteRequest(group_id="g", topics=topics))
    brokers.run(50)
    body: OffsetDeleteResponse = brokers.answer(token)
    return body.topics[0].partitions[0].error_code if body.topics else body.error_code


def join(brokers: Brokers, member_id: str = "", *, at: int = 1, **fields: Any) -> int:
    given: dict[str, Any] = {
        "group_id": "g",
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": 20_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": (JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
    }
    request = JoinGroupRequest(**given | fields)
    return brokers.ask(at, request)


def sync(brokers: Brokers, member_id: str, generation: int = 1, *, at: int = 1) -> int:
    assignment = SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")
    request = SyncGroupRequest(
        group_id="g", generation_id=generation, member_id=member_id, assignments=(assignment,)
    )
    return brokers.ask(at, request, api_version=4)  # which names no protocol


def heartbeat(brokers: Brokers, member_id: str, *, at: int = 1) -> ErrorCode:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
    error: ErrorCode = brokers.call(at, request).error_code
    return error


def member(brokers: Brokers) -> str:
    """The only member of a stable group."""
    member_id: str = brokers.answer(join(brokers)).member_id
    token = join(brokers, member_id)
    brokers.run(1)
    assert brokers.answer(token).error_code is NONE
    token = sync(brokers, member_id)
    brokers.run(50)
    assert brokers.answer(token).assignment == b"all"
    return member_id


def elect(brokers: Brokers, leader: int) -> None:
    brokers.change(OFFSETS_TOPIC, 0, leader=leader)


def cut_followers(brokers: Brokers) -> None:
    brokers.cut = {(2, 1), (3, 1)}
    brokers.run(600)  # what they had asked before is answered, empty


# --- where a coordinator is


def test_the_topic_is_created_when_somebody_first_asks() -> None:
    brokers = Brokers(1).start()
    brokers.holds_controller = True
    for _ in range(2):
        body = brokers.call(1, FindCoordinatorRequest(coordinator_keys=("g",)))
        assert body.coordinators[0].error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    asked = [send.body for send, _ in brokers.held if isinstance(send.body, CreateTopicsRequest)]
    assert [topic.name for request in asked for topic in request.topics] == [OFFSETS_TOPIC]
    assert fetched(brokers, fetch(brokers)) is NOT_HERE


def test_the_leader_of_its_partition_is_a_groups_coordinator(brokers: Brokers) -> None:
    for node_id in (1, 2, 3):
        body = brokers.call(node_id, FindCoordinatorRequest(coordinator_keys=("g", "h")))
        assert [(found.key, found.node_id, found.host) for found in body.coordinators] == [
            ("g", 1, "b1"),
            ("h", 1, "b1"),
        ]
    brokers.change(OFFSETS_TOPIC, 0, leader=-1)
    body = brokers.call(2, FindCoordinatorRequest(coordinator_keys=("g",)))
    assert body.coordinators[0].error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_another_broker_says_that_it_is_not_the_coordinator(brokers: Brokers) -> None:
    assert brokers.answer(join(brokers, at=2)).error_code is NOT_HERE
    assert brokers.answer(sync(brokers, "m", at=2)).error_code is NOT_HERE
    assert heartbeat(brokers, "m", at=2) is NOT_HERE
    assert commit_error(brokers, commit(brokers, 1, at=2)) is NOT_HERE
    assert fetched(brokers, fetch(brokers, at=2)) is NOT_HERE
    leave = LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="m"),))
    assert brokers.call(2, leave).error_code is NOT_HERE
    described = brokers.call(2, DescribeGroupsRequest(groups=("g",))).groups[0]
    assert described.error_code is NOT_HERE
    deleted = brokers.call(2, DeleteGroupsRequest(groups_names=("g",))).results[0]
    assert deleted.error_code is NOT_HERE


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "never-there"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_join_that_cannot_be_is_refused(
    brokers: Brokers, fields: dict[str, Any], error: ErrorCode
) -> None:
    assert brokers.answer(join(brokers, **fields)).error_code is error


def test_a_client_that_knows_no_other_way_joins_without_an_id(brokers: Brokers) -> None:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=SESSION_MS,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    token = brokers.ask(1, request, api_version=0)
    brokers.run(1)
    assert brokers.answer(token).error_code is NONE


def test_a_commit_for_no_partition_that_exists_makes_no_group(brokers: Brokers) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit_error(brokers, commit(brokers, 7, topic="absent")) is unknown
    assert commit_error(brokers, commit(brokers, 7, topic="absent", at=2)) is unknown
    described = brokers.call(1, DescribeGroupsRequest(groups=("g",))).groups[0]
    assert described.error_code is ErrorCode.GROUP_ID_NOT_FOUND


def test_the_protocol_must_be_named_since_sync_group_5(brokers: Brokers) -> None:
    request = SyncGroupRequest(
        group_id="g", generation_id=1, member_id=member(brokers), protocol_name="range"
    )
    assert brokers.call(1, request, api_version=4).error_code is NONE
    refused = brokers.call(1, request, api_version=5).error_code
    assert refused is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# --- what is answered when


def test_a_commit_is_answered_when_the_in_sync_replicas_have_it(brokers: Brokers) -> None:
    assert fetched(brokers, fetch(brokers)) == -1
    cut_followers(brokers)
    token = commit(brokers, 7)
    stable = fetch(brokers, stable=True)
    assert token not in brokers.answers
    assert stable not in brokers.answers, "it waits for what is being committed"
    assert fetched(brokers, fetch(brokers)) == -1, "what is not committed is not told"

    brokers.cut.clear()
    brokers.run(2000)
    assert commit_error(brokers, token) is NONE
    assert fetched(brokers, stable) == 7
    assert fetched(brokers, fetch(brokers)) == 7


def test_a_commit_that_takes_too_long_is_refused_and_may_count_later() -> None:
    brokers = Brokers(2, replica_lag_time_max_ms=60_000).start()
    brokers.create_topic("t", (1, 2))
    brokers.create_topic(OFFSETS_TOPIC, (1, 2))
    brokers.run(100)
    brokers.cut = {(2, 1)}
    brokers.run(600)
    token = commit(brokers, 7)
    brokers.run(4999)
    assert token not in brokers.answers
    brokers.run(1)
    assert commit_error(brokers, token) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert fetched(brokers, fetch(brokers)) == -1

    brokers.cut.clear()
    brokers.run(2000)
    assert fetched(brokers, fetch(brokers)) == 7


def test_too_few_replicas_take_no_commit_no_deletion_and_no_assignment(brokers: Brokers) -> None:
    token = commit(brokers, 5)
    brokers.run(50)
    assert commit_error(brokers, token) is NONE
    member_id = brokers.answer(join(brokers)).member_id
    join(brokers, member_id)
    brokers.run(1)
    brokers.configure(OFFSETS_TOPIC, "min.insync.replicas", "2")
    brokers.change(OFFSETS_TOPIC, 0, isr=(1,))
    end_offset = brokers.ends(OFFSETS_TOPIC, 0)[1][0]
    refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert brokers.answer(sync(brokers, member_id)).error_code is refusal
    assert commit_error(brokers, commit(brokers, 7, group_id="h")) is refusal
    brokers.call(1, LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id=member_id),)))
    assert deleted(brokers) is refusal
    assert brokers.ends(OFFSETS_TOPIC, 0)[1][0] == end_offset
    assert fetched(brokers, fetch(brokers)) == 5


def test_an_offset_that_is_deleted_is_gone(brokers: Brokers) -> None:
    assert deleted(brokers) is ErrorCode.GROUP_ID_NOT_FOUND
    commit(brokers, 5)
    brokers.run(50)
    assert deleted(brokers) is NONE
    assert fetched(brokers, fetch(brokers)) == -1


def test_a_commit_larger_than_a_batch_may_be_is_refused(brokers: Brokers) -> None:
    brokers.configure(OFFSETS_TOPIC, "max.message.bytes", "80")
    assert commit_error(brokers, commit(brokers, 7)) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_assignment_is_told_when_the_in_sync_replicas_have_it(brokers: Brokers) -> None:
    member_id = brokers.answer(join(brokers)).member_id
    join(brokers, member_id)
    brokers.run(1)
    cut_followers(brokers)
    token = sync(brokers, member_id)
    assert token not in brokers.answers
    brokers.cut.clear()
    brokers.run(2000)
    assert brokers.answer(token).assignment == b"all"


# --- changes of leader


def test_the_next_coordinator_knows_members_generation_and_offsets(brokers: Brokers) -> None:
    member_id = member(brokers)
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=1,
        member_id=member_id,
        topics=(
            OffsetCommitRequestTopic(
                name="t",
                partitions=(OffsetCommitRequestPartition(partition_index=0, committed_offset=9),),
            ),
        ),
    )
    token = brokers.ask(1, request)
    brokers.run(50)
    assert commit_error(brokers, token) is NONE

    elect(brokers, 2)
    brokers.run(1000)
    assert heartbeat(brokers, member_id, at=1) is NOT_HERE
    assert heartbeat(brokers, member_id, at=2) is NONE
    assert fetched(brokers, fetch(brokers, at=2)) == 9
    assert brokers.answer(sync(brokers, member_id, at=2)).assignment == b"all"
    assert "groups-loaded" in [trace.event for node, trace in brokers.traces if node == 2]


def test_who_waits_at_a_coordinator_that_resigns_is_sent_on(brokers: Brokers) -> None:
    member_id = member(brokers)
    newcomer = brokers.answer(join(brokers)).member_id
    waiting = join(brokers, newcomer)
    cut_followers(brokers)
    committing = commit(brokers, 3, group_id="other")
    stable = fetch(brokers, group_id="other", stable=True)
    assert waiting not in brokers.answers
    elect(brokers, 2)
    assert brokers.answer(waiting).error_code is NOT_HERE
    assert commit_error(brokers, committing) is NOT_HERE
    assert fetched(brokers, stable) is NOT_HERE
    assert heartbeat(brokers, member_id) is NOT_HERE


def test_a_coordinator_serves_when_all_that_it_read_is_committed(brokers: Brokers) -> None:
    """The new leader's high watermark may be behind: what lies after it could still be lost."""
    member_id = member(brokers)
    token = commit(brokers, 3, group_id="other")
    brokers.run(50)
    assert commit_error(brokers, token) is NONE
    brokers.cut = {(1, 2), (3, 2)}
    elect(brokers, 2)
    end_offset, high_watermark = brokers.ends(OFFSETS_TOPIC, 0)[2]
    assert high_watermark < end_offset, "else the case does not arise"

    assert fetched(brokers, fetch(brokers, at=2)) is LOADING
    assert brokers.answer(join(brokers, member_id, at=2)).error_code is LOADING
    assert brokers.call(2, ListGroupsRequest()).error_code is LOADING
    assert heartbeat(brokers, member_id, at=2) is NONE, "it should stay, not join again"

    brokers.cut.clear()
    brokers.run(2000)
    assert fetched(brokers, fetch(brokers, at=2, group_id="other")) == 3


def test_a_log_that_cannot_be_read_has_no_coordinator(brokers: Brokers) -> None:
    log = brokers.disks[2].logs[f"{OFFSETS_TOPIC}-0"]
    token = commit(brokers, 3)
    brokers.run(50)
    assert commit_error(brokers, token) is NONE
    log.batches = [batch_of(b"no key")]
    elect(brokers, 2)
    brokers.run(1000)
    assert fetched(brokers, fetch(brokers, at=2)) is NOT_HERE
    assert [trace.event for node, trace in brokers.traces if node == 2][
        -1
    ] == "coordinator-not-loaded"


def test_deleting_the_topic_ends_its_coordinators(brokers: Brokers) -> None:
    brokers.delete_topic(OFFSETS_TOPIC)
    assert fetched(brokers, fetch(brokers)) is NOT_HERE


# --- time


def test_a_silent_member_is_forgotten_and_the_group_is_empty(brokers: Brokers) -> None:
    member_id = member(brokers)
    brokers.run(SESSION_MS - 100)
    assert heartbeat(brokers, member_id) is NONE
    brokers.run(SESSION_MS)
    assert heartbeat(brokers, member_id) is ErrorCode.UNKNOWN_MEMBER_ID
    (group,) = brokers.call(1, ListGroupsRequest()).groups
    assert group.group_state == "Empty"


def test_a_member_that_the_next_coordinator_never_hears_is_forgotten(brokers: Brokers) -> None:
    member(brokers)
    elect(brokers, 2)
    brokers.run(2 * SESSION_MS)
    groups = brokers.call(2, ListGroupsRequest()).groups
    assert groups == (), "without members or offsets it goes as well"


def test_a_commit_is_a_sign_of_life(brokers: Brokers) -> None:
    member_id = member(brokers)
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=1, member_id=member_id, topics=()
    )
    for _ in range(4):
        brokers.run(SESSION_MS - 100)
        brokers.call(1, request)
    assert heartbeat(brokers, member_id) is NONE


def test_old_offsets_and_empty_groups_leave_the_log_with_tombstones() -> None:
    brokers = Brokers(
        1, groups=GroupConfig(retention_ms=5000, retention_check_interval_ms=1000)
    ).start()
    brokers.create_topic("t", (1,))
    brokers.create_topic(OFFSETS_TOPIC, (1,))
    assert commit_error(brokers, commit(brokers, 3)) is NONE
    brokers.run(4000)
    assert fetched(brokers, fetch(brokers)) == 3
    brokers.run(2100)
    assert fetched(brokers, fetch(brokers)) == -1
    assert brokers.call(1, ListGroupsRequest()).groups == ()
    log = brokers.disks[1].logs[f"{OFFSETS_TOPIC}-0"]
    last = list(records_of(log.batches[-1]))
    assert [record.value for record in last] == [None, None]


def test_offsets_of_a_deleted_topic_are_forgotten(brokers: Brokers) -> None:
    token = commit(brokers, 3)
    brokers.run(50)
    assert commit_error(brokers, token) is NONE
    brokers.delete_topic("t")
    assert fetched(brokers, fetch(brokers)) == -1
    brokers.create_topic("t", (1, 2, 3), number=99)
    brokers.run(50)
    assert fetched(brokers, fetch(brokers)) == -1


def test_a_commit_on_its_way_does_not_outlive_its_topic(brokers: Brokers) -> None:
    cut_followers(brokers)
    token = commit(brokers, 7)
    brokers.delete_topic("t")
    brokers.create_topic("t", (1, 2, 3), number=99)
    brokers.cut.clear()
    brokers.run(2000)
    assert commit_error(brokers, token) is NONE
    assert fetched(brokers, fetch(brokers)) == -1


def test_a_group_that_could_not_be_deleted_is_still_there(brokers: Brokers) -> None:
    token = commit(brokers, 3)
    brokers.run(50)
    assert commit_error(brokers, token) is NONE
    brokers.configure(OFFSETS_TOPIC, "min.insync.replicas", "2")
    brokers.change(OFFSETS_TOPIC, 0, isr=(1,))
    for _ in range(2):
        (result,) = brokers.call(1, DeleteGroupsRequest(groups_names=("g",))).results
        assert result.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert [group.group_id for group in brokers.call(1, ListGroupsRequest()).groups] == ["g"]


@pytest.mark.parametrize(
    ("bytes_max", "groups"), [("75", []), ("60", ["g"])], ids=["offset", "offset and group"]
)
def test_what_could_not_be_forgotten_is_forgotten_later(bytes_max: str, groups: list[str]) -> None:
    """The tombstone of an offset is too large to be written, or any is."""
    brokers = Brokers(
        1, groups=GroupConfig(retention_ms=5000, retention_check_interval_ms=1000)
    ).start()
    brokers.create_topic("t", (1,))
    brokers.create_topic(OFFSETS_TOPIC, (1,))
    assert commit_error(brokers, commit(brokers, 3)) is NONE
    brokers.configure(OFFSETS_TOPIC, "max.message.bytes", bytes_max)
    brokers.run(7000)
    assert fetched(brokers, fetch(brokers)) == 3
    assert [group.group_id for group in brokers.call(1, ListGroupsRequest()).groups] == groups
    brokers.configure(OFFSETS_TOPIC, "max.message.bytes", None)
    brokers.run(1000)
    assert fetched(brokers, fetch(brokers)) == -1
    assert brokers.call(1, ListGroupsRequest()).groups == ()


def test_groups_with_long_names_keep_no_others_from_being_forgotten() -> None:
    brokers = Brokers(
        1, groups=GroupConfig(retention_ms=5000, retention_check_interval_ms=1000)
    ).start()
    brokers.create_topic("t", (1,))
    brokers.create_topic(OFFSETS_TOPIC, (1,))
    brokers.configure(OFFSETS_TOPIC, "max.message.bytes", "4000")
    for group_id in ("a", "b", "c", "d"):
        long = commit(brokers, 3, group_id=group_id * 1500)
        assert commit_error(brokers, long) is NONE
        assert commit_error(brokers, commit(brokers, 3, group_id=group_id)) is NONE
    brokers.run(7000)
    assert brokers.call(1, ListGroupsRequest()).groups == ()


def test_the_longest_client_id_makes_no_member_id_that_cannot_be_written(
    brokers: Brokers,
) -> None:
    joining = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=SESSION_MS,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
    )
    member_id = brokers.answer(brokers.ask(1, joining, client_id="c" * 32_767)).member_id
    token = join(brokers, member_id)
    brokers.run(1)
    assert brokers.answer(token).error_code is NONE
    token = sync(brokers, member_id)
    brokers.run(50)
    assert brokers.answer(token).error_code is NONE
    assert len(member_id) <= 32_767


# --- tools


def test_tools_see_groups_and_their_members(brokers: Brokers) -> None:
    member_id = member(brokers)
    token = commit(brokers, 3, group_id="alone")
    brokers.run(50)
    assert commit_error(brokers, token) is NONE

    listed = brokers.call(1, ListGroupsRequest()).groups
    assert [
        (group.group_id, group.protocol_type, group.group_state, group.group_type)
        for group in listed
    ] == [("g", "consumer", "Stable", "classic"), ("alone", "", "Empty", "classic")]
    stable = brokers.call(1, ListGroupsRequest(states_filter=("stable",))).groups
    assert [group.group_id for group in stable] == ["g"]
    assert brokers.call(1, ListGroupsRequest(types_filter=("consumer",))).groups == ()

    described = brokers.call(1, DescribeGroupsRequest(groups=("g", "alone", "absent"))).groups
    assert [group.group_state for group in described] == ["Stable", "Empty", "Dead"]
    (only,) = described[0].members
    assert (only.member_id, only.member_metadata, only.member_assignment) == (
        member_id,
        SUBSCRIPTION,
        b"all",
    )
    assert described[2].error_code is ErrorCode.GROUP_ID_NOT_FOUND
    old = brokers.call(1, DescribeGroupsRequest(groups=("absent",)), api_version=5).groups[0]
    assert (old.error_code, old.group_state) == (NONE, "Dead")


def test_a_described_group_tells_what_may_be_done_to_it_if_asked(brokers: Brokers) -> None:
    """KIP-430, as Apache Kafka 4.3.1 without an authorizer: 3400; not for an absent group, unless
    the version calls it a dead one."""
    member(brokers)
    for asked, present, dead in ((False, -(2**31), -(2**31)), (True, 3400, 3400)):
        request = DescribeGroupsRequest(groups=("g", "absent"), include_authorized_operations=asked)
        for version, absent in ((5, dead), (6, -(2**31))):
            described = brokers.call(1, request, api_version=version).groups
            told = [group.authorized_operations for group in described]
            assert told == [present, absent], version


def test_an_empty_group_can_be_deleted_with_its_offsets(brokers: Brokers) -> None:
    member(brokers)
    commit(brokers, 3, group_id="alone")
    brokers.run(50)
    token = brokers.ask(1, DeleteGroupsRequest(groups_names=("g", "alone", "absent", "g")))
    brokers.run(50)
    assert [(done.group_id, done.error_code) for done in brokers.answer(token).results] == [
        ("g", ErrorCode.NON_EMPTY_GROUP),
        ("alone", NONE),
        ("absent", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert fetched(brokers, fetch(brokers, group_id="alone")) == -1
    elect(brokers, 2)
    brokers.run(1000)
    assert [group.group_id for group in brokers.call(2, ListGroupsRequest()).groups] == ["g"]


def test_members_that_leave_are_answered_one_by_one(brokers: Brokers) -> None:
    member_id = member(brokers)
    leaving = (MemberIdentity(member_id=member_id), MemberIdentity(member_id="never-there"))
    body = brokers.call(1, LeaveGroupRequest(group_id="g", members=leaving))
    errors = [answer.error_code for answer in body.members]
    assert errors == [NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    absent = brokers.call(1, LeaveGroupRequest(group_id="no group", members=leaving))
    assert {answer.error_code for answer in absent.members} == {ErrorCode.UNKNOWN_MEMBER_ID}


def test_the_topic_is_internal_and_takes_nothing_from_clients(brokers: Brokers) -> None:
    topics = brokers.call(1, MetadataRequest(topics=None)).topics
    assert {topic.name: topic.is_internal for topic in topics} == {OFFSETS_TOPIC: True, "t": False}
    refused = brokers.produced(brokers.produce(1, OFFSETS_TOPIC, 0, batch_of(b"x")))
    assert refused.error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
