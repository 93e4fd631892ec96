"""Members of both protocols in one group: it is taken along, shared, and let go again."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from broker.config import GroupConfig
from broker.groups.consumer.consumer_values import (
    ClassicProtocol,
    ClassicSide,
    SubscriptionChange,
)
from broker.groups.conversion import downgraded
from broker.groups.embedded import read_assignment, read_subscription, write_assignment
from broker.groups.mixed import id_places
from broker.groups.offsets_topic import OFFSETS_TOPIC
from tests.broker.brokers import Brokers
from tests.broker.groups.consumer.consumer_scenes import Scene, Topics, places
from wire.errors import ErrorCode
from wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    OwnedPartitions,
)
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from wire.messages.groups import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from wire.metadata_records import FeatureLevelRecord

PROPERTIES = (("group.consumer.assignment.interval.ms", "0"),)
NONE = ErrorCode.NONE
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
# A subscription to the topic "t", of version 0.
SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


def started(**config: Any) -> Brokers:
    """Broker 1 coordinates; the topic "t" has four partitions."""
    groups = GroupConfig(initial_rebalance_delay_ms=0, **config)
    running = Brokers(3, replica_lag_time_max_ms=1000, groups=groups, properties=PROPERTIES).start()
    running.write(FeatureLevelRecord(name="group.version", feature_level=1))
    running.create_topic("t", *[(1, 2, 3)] * 4)
    running.create_topic(OFFSETS_TOPIC, (1, 2, 3))
    running.run(600)
    return running


@pytest.fixture
def brokers() -> Brokers:
    return started()


@dataclass
class Classic:
    """A member of the classic protocol, which gives all back when it joins again."""

    brokers: Brokers
    id: str = ""
    instance_id: str | None = None
    subscription: bytes = SUBSCRIPTION
    generation: int = -1
    partitions: set[int] = field(default_factory=set)
    at: int = 1

    def join(self) -> ErrorCode:
        self.partitions = set()
        return self.joined(self.ask_to_join())

    def ask_to_join(self) -> int:
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=9000,
            rebalance_timeout_ms=3000,
            member_id=self.id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=self.subscription),),
        )
        token = self.brokers.ask(self.at, request, api_version=3 if self.instance_id is None else 9)
        self.brokers.run(2)
        return token

    def joined(self, token: int) -> ErrorCode:
        told = self.brokers.answer(token)
        self.id = told.member_id or self.id  # it may have been given one, though it waits in vain
        if told.error_code is NONE:
            self.generation = told.generation_id
        error: ErrorCode = told.error_code
        return error

    def sync(self, *shares: tuple[str, bytes]) -> ErrorCode:
        request = SyncGroupRequest(
            group_id="g",
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=id_, assignment=share) for id_, share in shares
            ),
        )
        told = self.brokers.call(self.at, request)
        if told.error_code is NONE:
            places = read_assignment(told.assignment)
            assert places is not None
            self.partitions = {index for _, index in places}
        error: ErrorCode = told.error_code
        return error

    def heartbeat(self) -> ErrorCode:
        request = HeartbeatRequest(
            group_id="g",
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance_id,
        )
        error: ErrorCode = self.brokers.call(self.at, request).error_code
        return error

    def obey(self) -> None:
        if self.heartbeat() is REBALANCE:
            assert self.join() is NONE
            assert self.sync() is NONE

    def commit(self) -> ErrorCode:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        request = OffsetCommitRequest(
            group_id="g",
            member_id=self.id,
            generation_id_or_member_epoch=self.generation,
            topics=(OffsetCommitRequestTopic(name="t", partitions=(partition,)),),
        )
        told = self.brokers.call(self.at, request, api_version=8)
        error: ErrorCode = told.topics[0].partitions[0].error_code
        return error


@dataclass
class Modern:
    """A member of the consumer protocol, which does as it is told at once."""

    brokers: Brokers
    id: str
    epoch: int = 0
    owned: tuple[OwnedPartitions, ...] = ()
    instance_id: str | None = None

    def beat(self) -> ErrorCode:
        is_first = self.epoch == 0
        told = self.brokers.call(
            1,
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=self.id,
                member_epoch=self.epoch,
                instance_id=self.instance_id,
                rebalance_timeout_ms=3000 if is_first else -1,
                subscribed_topic_names=("t",) if is_first else None,
                topic_partitions=self.owned,
            ),
        )
        if told.error_code is NONE:
            self.epoch = told.member_epoch
        if told.assignment is not None:
            self.owned = tuple(
                OwnedPartitions(topic_id=each.topic_id, partitions=each.partitions)
                for each in told.assignment.topic_partitions
            )
        error: ErrorCode = told.error_code
        return error

    @property
    def partitions(self) -> set[int]:
        return {index for each in self.owned for index in each.partitions}

    def leave(self) -> None:
        self.epoch, self.owned = -1, ()
        assert self.beat() is NONE


def classic_group(brokers: Brokers, **fields: Any) -> Classic:
    """One member, which leads and has given itself all."""
    member = Classic(brokers, **fields)
    assert member.join() is NONE
    share = write_assignment(0, {"t": range(4)})
    assert member.sync((member.id, share)) is NONE
    assert member.partitions == {0, 1, 2, 3}
    return member


def settle(*members: Classic | Modern) -> None:
    for _ in range(4):
        for member in members:
            if isinstance(member, Classic):
                member.obey()
            else:
                assert member.beat() is NONE


def type_of(brokers: Brokers) -> str:
    (listed,) = brokers.call(1, ListGroupsRequest()).groups
    kind: str = listed.group_type
    return kind


def test_first_member_of_the_consumer_protocol_takes_the_group_along(brokers: Brokers) -> None:
    old = classic_group(brokers)
    assert old.commit() is NONE
    new = Modern(brokers, "new")
    assert new.beat() is NONE
    assert (new.partitions, type_of(brokers)) == (set(), "consumer")
    assert old.partitions == {0, 1, 2, 3}
    assert old.commit() is NONE  # in its generation, which has become its epoch
    settle(old, new)
    assert old.partitions | new.partitions == {0, 1, 2, 3}
    assert len(old.partitions) == len(new.partitions) == 2
    (group,) = brokers.call(1, ConsumerGroupDescribeRequest(group_ids=("g",))).groups
    assert sorted(member.member_type for member in group.members) == [0, 1]


def test_partition_goes_over_once_it_is_given_back(brokers: Brokers) -> None:
    old, new = classic_group(brokers), Modern(brokers, "new")
    for _ in range(3):
        new.beat()
    assert new.partitions == set()
    assert old.heartbeat() is REBALANCE
    old.join()
    new.beat()
    assert len(new.partitions) == 2


def test_group_goes_back_when_only_classic_members_are_left(brokers: Brokers) -> None:
    old, new = classic_group(brokers), Modern(brokers, "new")
    new.beat()
    settle(old, new)
    new.leave()
    assert type_of(brokers) == "classic"
    assert old.heartbeat() in (REBALANCE, ErrorCode.ILLEGAL_GENERATION)
    old.join()
    assert old.sync((old.id, write_assignment(0, {"t": range(4)}))) is NONE
    (group,) = brokers.call(1, DescribeGroupsRequest(groups=("g",))).groups
    assert (group.group_state, len(group.members)) == ("Stable", 1)


def test_group_with_members_of_both_survives_its_coordinator(brokers: Brokers) -> None:
    old, new = classic_group(brokers), Modern(brokers, "new")
    new.beat()
    settle(old, new)
    brokers.change(OFFSETS_TOPIC, 0, leader=2)
    brokers.run(600)
    old.at = 2
    assert (old.heartbeat(), old.commit()) == (NONE, NONE)


def test_classic_member_joins_a_group_of_the_consumer_protocol(brokers: Brokers) -> None:
    new, old = Modern(brokers, "new"), Classic(brokers)
    new.beat()
    assert old.join() is NONE
    assert old.sync() is NONE
    settle(new, old)
    assert old.partitions | new.partitions == {0, 1, 2, 3}
    assert type_of(brokers) == "consumer"


def test_static_member_is_started_again_with_the_other_protocol(brokers: Brokers) -> None:
    old = classic_group(brokers, instance_id="i")
    new = Modern(brokers, "new", instance_id="i")
    assert new.beat() is NONE
    assert new.partitions == {0, 1, 2, 3}
    assert old.heartbeat() is ErrorCode.FENCED_INSTANCE_ID
    new.epoch, new.owned = -2, ()
    assert new.beat() is NONE
    again = Classic(brokers, instance_id="i")
    assert again.join() is NONE
    assert type_of(brokers) == "classic"  # nobody else is in it


def test_classic_member_that_does_not_join_again_is_removed(brokers: Brokers) -> None:
    old, new = classic_group(brokers), Modern(brokers, "new")
    new.beat()
    for _ in range(5):
        brokers.run(900)
        told = old.heartbeat()
        new.beat()
    assert told is ErrorCode.UNKNOWN_MEMBER_ID
    assert new.partitions == {0, 1, 2, 3}


def test_members_of_both_can_be_removed_by_a_tool(brokers: Brokers) -> None:
    old, new = classic_group(brokers), Modern(brokers, "new")
    new.beat()
    leaving = tuple(MemberIdentity(member_id=each) for each in (old.id, "stranger"))
    brokers.cut = {(2, 1), (3, 1)}
    brokers.run(600)  # what the followers had asked before is answered, empty
    token = brokers.ask(1, LeaveGroupRequest(group_id="g", members=leaving))
    assert token not in brokers.answers, "it is not committed yet"
    brokers.cut = set()
    brokers.run(2000)
    told = brokers.answer(token)
    errors = [member.error_code for member in told.members]
    assert errors == [NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    settle(new)
    assert new.partitions == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("policy", "up", "kind_in_the_end"),
    [
        ("disabled", ErrorCode.GROUP_ID_NOT_FOUND, "classic"),
        ("downgrade", ErrorCode.GROUP_ID_NOT_FOUND, "classic"),
        ("upgrade", NONE, "consumer"),
        ("bidirectional", NONE, "classic"),
    ],
)
def test_policy_says_which_way_is_open(policy: str, up: ErrorCode, kind_in_the_end: str) -> None:
    brokers = started(consumer_migration_policy=policy)
    old, new = classic_group(brokers), Modern(brokers, "new")
    assert new.beat() is up
    if up is NONE:
        new.leave()
    assert type_of(brokers) == kind_in_the_end
    assert old.heartbeat() is not ErrorCode.UNKNOWN_MEMBER_ID


def test_members_that_wait_for_a_rebalance_are_told_to_join_the_new_group(
    brokers: Brokers,
) -> None:
    old, waiting = classic_group(brokers), Classic(brokers)
    token = waiting.ask_to_join()
    assert token not in brokers.answers
    new = Modern(brokers, "new")
    assert new.beat() is NONE
    assert waiting.joined(token) is REBALANCE
    assert waiting.join() is NONE
    assert waiting.sync() is NONE
    settle(old, waiting, new)
    assert old.partitions | waiting.partitions | new.partitions == {0, 1, 2, 3}


def test_subscription_that_cannot_be_read_stays_classic(brokers: Brokers) -> None:
    old = Classic(brokers, subscription=b"?")
    old.join()
    old.sync((old.id, b""))
    assert Modern(brokers, "new").beat() is ErrorCode.GROUP_ID_NOT_FOUND
    assert old.heartbeat() is NONE


def test_classic_member_needs_a_subscription_that_can_be_read(brokers: Brokers) -> None:
    Modern(brokers, "new").beat()
    refused = Classic(brokers, subscription=b"?").join()
    assert refused is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_subscriptions_of_all_versions_are_read() -> None:
    """Owned partitions since 1, a generation since 2, a rack since 3."""
    owned = b"\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\5"
    after = {1: owned, 2: owned + b"\0\0\0\7", 3: owned + b"\0\0\0\7\0\1r"}
    for version, rest in after.items():
        said = read_subscription(bytes((0, version)) + SUBSCRIPTION[2:] + rest)
        assert said is not None
        assert (said.topics, said.owned) == (("t",), (("t", 0), ("t", 5)))
        assert said.rack_id == ("r" if version == 3 else None)
    assert read_subscription(b"\0\3" + SUBSCRIPTION[2:] + owned) is None


def test_assignments_are_read_as_they_were_written() -> None:
    places = read_assignment(write_assignment(3, {"u": (1,), "t": (2, 0)}))
    assert places == (("t", 0), ("t", 2), ("u", 1))


def test_no_partition_is_given_away_by_a_downgrade_before_it_is_given_back() -> None:
    """The group may be upgraded again, with what was written down, before anyone has joined."""
    scene = Scene()
    scene.beat("a")
    scene.beat("b")
    scene.beat("a")  # it is to give two back, and has not
    assert scene.group.members["a"].current.revoking
    protocol = ClassicProtocol(name="range", metadata=SUBSCRIPTION)
    side = ClassicSide(session_timeout_ms=9000, protocols=(protocol,))
    for member in tuple(scene.group.members.values()):
        said = member.subscription
        scene.group.apply(
            SubscriptionChange(group_id="g", member_id=member.id, subscription=said, classic=side)
        )
    a, b = downgraded(scene.group, scene.topics, 0).members
    assert len(read_assignment(a.assignment) or ()) == 4
    assert read_assignment(b.assignment) == ()


def test_partitions_that_do_not_exist_are_nobodys() -> None:
    """The leader of a classic group assigns what it likes: an upgrade must not keep it for ever."""
    claimed = (("t", 0), ("t", 3), ("t", 4), ("t", -1), ("none", 0))
    assert id_places(claimed, Topics(t=4)) == places("t", 0, 3)
