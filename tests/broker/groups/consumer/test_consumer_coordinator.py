"""Coordinators of groups of the consumer protocol on real brokers: what survives, what is told."""

from typing import Any

import pytest

from broker.config import GroupConfig
from broker.groups.consumer import topic_patterns
from broker.groups.consumer.consumer_group import ConsumerGroup, ConsumerMember
from broker.groups.consumer.consumer_values import Current
from broker.groups.offsets_topic import OFFSETS_TOPIC
from controller.metadata.image import ResourceType
from tests.broker.brokers import Brokers
from tests.broker.groups.led import TOPIC_ID, Led, transactional_request
from wire.errors import ErrorCode
from wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribedConsumerGroup,
    OwnedPartitions,
)
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    ListGroupsRequest,
)
from wire.metadata_records import ConfigRecord, FeatureLevelRecord

NONE = ErrorCode.NONE
SESSION_MS = 5000
PROPERTIES = (("group.consumer.assignment.interval.ms", "0"),)


def started(**settings: Any) -> Brokers:
    """Broker 1 coordinates all groups; 2 and 3 are in sync."""
    config = GroupConfig(
        initial_rebalance_delay_ms=0,
        retention_check_interval_ms=1000,
        retention_ms=60_000,
        consumer_session_timeout_ms=SESSION_MS,
        **settings,
    )
    running = Brokers(3, replica_lag_time_max_ms=1000, groups=config, properties=PROPERTIES).start()
    running.write(FeatureLevelRecord(name="group.version", feature_level=1))
    running.create_topic("t", (1, 2, 3))
    running.create_topic(OFFSETS_TOPIC, (1, 2, 3))
    running.run(600)
    return running


@pytest.fixture
def brokers() -> Brokers:
    return started()


def beat(
    brokers: Brokers, member_id: str = "m", epoch: int = 0, *, at: int = 1, **said: Any
) -> Any:
    joining = {"rebalance_timeout_ms": 3000, "subscribed_topic_names": ("t",)}
    first = {**joining, "topic_partitions": ()} if epoch == 0 else {}
    fields = {"group_id": "g", **first, **said}
    request = ConsumerGroupHeartbeatRequest(member_id=member_id, member_epoch=epoch, **fields)
    return brokers.call(at, request)


def describe(brokers: Brokers, *, at: int = 1, group_id: str = "g") -> DescribedConsumerGroup:
    body = brokers.call(at, ConsumerGroupDescribeRequest(group_ids=(group_id,)))
    found: DescribedConsumerGroup = body.groups[0]
    return found


def commit(brokers: Brokers, member_id: str, epoch: int, *, at: int = 1, **how: Any) -> ErrorCode:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    request = OffsetCommitRequest(
        group_id="g",
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=(OffsetCommitRequestTopic(name="t", partitions=(partition,)),),
    )
    error: ErrorCode = brokers.call(at, request, **how).topics[0].partitions[0].error_code
    return error


def fetch(brokers: Brokers, member_id: str | None, epoch: int, *, at: int = 1) -> Any:
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    asked = OffsetFetchRequestGroup(
        group_id="g", member_id=member_id, member_epoch=epoch, topics=topics
    )
    (group,) = brokers.call(at, OffsetFetchRequest(groups=(asked,), require_stable=True)).groups
    if group.error_code is not NONE:
        return group.error_code
    return group.topics[0].partitions[0].committed_offset


def join(brokers: Brokers) -> Any:
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=9000, protocol_type="consumer", protocols=(protocol,)
    )
    token = brokers.ask(1, request, api_version=3)
    brokers.run(2)
    return brokers.answer(token)


def test_member_joins_and_is_described(brokers: Brokers) -> None:
    told = beat(brokers)
    assert (told.error_code, told.member_id, told.member_epoch) == (NONE, "m", 1)
    assert [each.partitions for each in told.assignment.topic_partitions] == [(0,)]
    assert told.heartbeat_interval_ms == 5000
    group = describe(brokers)
    assert (group.group_state, group.group_epoch, group.assignor_name) == ("Stable", 1, "uniform")
    (member,) = group.members
    assert member.assignment == member.target_assignment
    assert member.assignment.topic_partitions[0].topic_name == "t"
    assert member.member_type == 1


def test_heartbeat_is_answered_when_it_is_committed(brokers: Brokers) -> None:
    """What could not be written has not happened."""
    brokers.change(OFFSETS_TOPIC, 0, isr=(1,))
    brokers.configure(OFFSETS_TOPIC, "min.insync.replicas", "2")
    brokers.run(10)
    refused = beat(brokers)
    assert refused.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert describe(brokers).error_code is ErrorCode.GROUP_ID_NOT_FOUND


def test_group_survives_its_coordinator(brokers: Brokers) -> None:
    beat(brokers, instance_id="i")
    beat(brokers, "n", subscribed_topic_names=None, subscribed_topic_regex="t.*")
    assert commit(brokers, "m", 1) is NONE
    before = describe(brokers)
    brokers.change(OFFSETS_TOPIC, 0, leader=2)
    brokers.run(600)
    assert beat(brokers, epoch=1, at=1).error_code is ErrorCode.NOT_COORDINATOR
    assert describe(brokers, at=2) == before
    assert fetch(brokers, None, -1, at=2) == 7
    assert beat(brokers, epoch=1, instance_id="i", at=2).error_code is NONE


def test_silent_member_is_taken_to_be_gone(brokers: Brokers) -> None:
    beat(brokers)
    brokers.run(SESSION_MS - 100)
    assert beat(brokers, epoch=1).error_code is NONE
    brokers.run(SESSION_MS + 100)
    assert beat(brokers, epoch=1).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert describe(brokers).group_state == "Empty"


def test_member_that_keeps_what_is_not_its_own_is_removed(brokers: Brokers) -> None:
    topic_id = beat(brokers).assignment.topic_partitions[0].topic_id
    owned = (OwnedPartitions(topic_id=topic_id, partitions=(0,)),)
    beat(brokers, epoch=1, subscribed_topic_names=(), topic_partitions=owned)
    commit(brokers, "m", 1)  # so that the group stays when it is empty
    for _ in range(3):
        brokers.run(900)
        assert beat(brokers, epoch=1, topic_partitions=owned).error_code is NONE
    brokers.run(900)
    told = beat(brokers, epoch=1, topic_partitions=owned)
    assert told.error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_commit_and_fetch_in_their_epoch(brokers: Brokers) -> None:
    beat(brokers)
    assert commit(brokers, "m", 1) is NONE
    assert commit(brokers, "m", 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(brokers, "m", 0) is ErrorCode.STALE_MEMBER_EPOCH  # not yet its partition
    assert commit(brokers, "n", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(brokers, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(brokers, "m", 1, api_version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert fetch(brokers, "m", 1) == fetch(brokers, None, -1) == 7
    assert fetch(brokers, "m", 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert fetch(brokers, "n", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    beat(brokers, "n")
    beat(brokers, epoch=1)
    assert describe(brokers).members[0].member_epoch == 2
    assert commit(brokers, "m", 1) is NONE  # its partition since epoch 1 (KIP-1251)
    beat(brokers, epoch=-1)
    beat(brokers, "n", epoch=-1)
    assert commit(brokers, "", -1) is NONE  # nobody is in it


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [
        ("m", 3, NONE),
        ("m", 2, NONE),  # its partition since then (KIP-1251)
        ("m", 1, ErrorCode.STALE_MEMBER_EPOCH),
        ("m", 4, ErrorCode.STALE_MEMBER_EPOCH),
        ("n", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, NONE),  # a producer from before KIP-447
    ],
)
def test_members_commit_in_transactions_in_their_epoch(
    member_id: str, epoch: int, error: ErrorCode
) -> None:
    led = Led()
    current = Current(epoch=3, previous_epoch=2, assigned={(TOPIC_ID, 0): 2})
    member = ConsumerMember(id="m", current=current)
    led.coordinator.consumers.groups["g"] = ConsumerGroup(id="g", epoch=3, members={"m": member})
    led.ask_in_transaction(transactional_request(7, member_id=member_id, generation_id=epoch))
    led.verifier.answer()
    led.commit()
    led.settle()
    assert led.told() is error


def test_tools_see_its_type_and_delete_it_once_it_is_empty(brokers: Brokers) -> None:
    beat(brokers)
    commit(brokers, "m", 1)
    (listed,) = brokers.call(1, ListGroupsRequest(types_filter=("Consumer",))).groups
    assert (listed.group_id, listed.group_type, listed.group_state) == ("g", "consumer", "Stable")
    assert brokers.call(1, ListGroupsRequest(types_filter=("classic",))).groups == ()
    (classic,) = brokers.call(1, DescribeGroupsRequest(groups=("g",))).groups
    assert classic.error_message == "Group g is not a classic group."
    partitions = (OffsetDeleteRequestPartition(partition_index=0),)
    topics = (OffsetDeleteRequestTopic(name="t", partitions=partitions),)
    deleted = brokers.call(1, OffsetDeleteRequest(group_id="g", topics=topics))
    error = deleted.topics[0].partitions[0].error_code
    assert error is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    delete = DeleteGroupsRequest(groups_names=("g",))
    assert brokers.call(1, delete).results[0].error_code is ErrorCode.NON_EMPTY_GROUP
    beat(brokers, epoch=-1)
    assert brokers.call(1, delete).results[0].error_code is NONE
    assert fetch(brokers, None, -1) == -1
    brokers.change(OFFSETS_TOPIC, 0, leader=2)
    brokers.run(600)
    assert describe(brokers, at=2).error_code is ErrorCode.GROUP_ID_NOT_FOUND


def test_empty_group_expires_with_its_offsets(brokers: Brokers) -> None:
    beat(brokers)
    commit(brokers, "m", 1)
    beat(brokers, epoch=-1)
    brokers.run(58_000)
    assert fetch(brokers, None, -1) == 7
    brokers.run(4000)
    assert fetch(brokers, None, -1) == -1
    assert brokers.call(1, ListGroupsRequest()).groups == ()


def test_empty_group_makes_way_for_the_other_protocol_and_keeps_its_offsets(
    brokers: Brokers,
) -> None:
    assert commit(brokers, "", -1) is NONE  # a classic group, that nobody is in
    assert beat(brokers).error_code is NONE
    assert fetch(brokers, "m", 1) == 7
    assert join(brokers).error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    beat(brokers, epoch=-1)
    assert join(brokers).error_code is NONE
    assert describe(brokers).error_message == "Group g is not a consumer group."
    assert beat(brokers).error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert fetch(brokers, None, -1) == 7


def test_empty_group_that_can_not_make_way_now_is_joined_later() -> None:
    """INCONSISTENT_GROUP_PROTOCOL would be the end of that consumer."""
    brokers = started(consumer_migration_policy="disabled")
    beat(brokers)
    beat(brokers, epoch=-1)
    brokers.change(OFFSETS_TOPIC, 0, isr=(1,))
    brokers.configure(OFFSETS_TOPIC, "min.insync.replicas", "2")
    brokers.run(10)
    assert join(brokers).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE


def configure(brokers: Brokers, kind: ResourceType, resource: str, name: str, value: str) -> None:
    brokers.write(ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value))
    brokers.run(10)


def test_group_has_times_of_its_own(brokers: Brokers) -> None:
    for name, value in (("session.timeout", "9000"), ("heartbeat.interval", "7000")):
        configure(brokers, ResourceType.GROUP, "g", f"consumer.{name}.ms", value)
    assert beat(brokers).heartbeat_interval_ms == 7000
    brokers.run(8900)
    assert beat(brokers, epoch=1).error_code is NONE
    assert beat(brokers, group_id="h").heartbeat_interval_ms == 5000


@pytest.mark.parametrize(("given", "told"), [("4999", 5000), ("15001", 15_000)])
def test_times_of_a_group_are_brought_into_the_range_of_its_broker(
    brokers: Brokers, given: str, told: int
) -> None:
    """They may have been set before the range was."""
    configure(brokers, ResourceType.GROUP, "g", "consumer.heartbeat.interval.ms", given)
    assert beat(brokers).heartbeat_interval_ms == told


def test_assignments_have_an_interval_that_may_change(brokers: Brokers) -> None:
    configure(brokers, ResourceType.BROKER, "", "group.consumer.assignment.interval.ms", "2000")
    beat(brokers, "a")
    assert beat(brokers, "b").member_epoch == 1
    group = describe(brokers)
    assert (group.group_epoch, group.assignment_epoch) == (2, 1)
    brokers.run(2000)
    assert beat(brokers, "a", epoch=1).member_epoch == 2
    assert describe(brokers).assignment_epoch == 2


def test_patterns_are_matched_on_while_nobody_asks(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_patterns, "_STEPS_OF_SLICE", 1)  # a slice for each name
    for name in ("ta", "tb", "tc"):
        brokers.create_topic(name, (1, 2, 3))
    brokers.run(100)
    said: dict[str, Any] = {"subscribed_topic_names": None, "subscribed_topic_regex": "t."}
    assert beat(brokers, **said).assignment.topic_partitions == ()
    brokers.run(SESSION_MS - 100)
    assert len(beat(brokers, epoch=1).assignment.topic_partitions) == 3


@pytest.mark.parametrize("epoch", [1, -1])
def test_group_that_does_not_exist_is_not_found(brokers: Brokers, epoch: int) -> None:
    told = beat(brokers, epoch=epoch)
    assert told.error_code is ErrorCode.GROUP_ID_NOT_FOUND


def test_cluster_without_the_feature_serves_neither(brokers: Brokers) -> None:
    brokers.write(FeatureLevelRecord(name="group.version", feature_level=0))
    brokers.run(10)
    assert beat(brokers).error_code is ErrorCode.UNSUPPORTED_VERSION
    assert describe(brokers).error_code is ErrorCode.UNSUPPORTED_VERSION
