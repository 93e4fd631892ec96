"""Static members and the log of their coordinator: what is told when, and what outlives it."""

import pytest

from broker.config import GroupConfig
from broker.groups.offsets_topic import OFFSETS_TOPIC
from tests.broker.brokers import Brokers
from tests.broker.groups.scenes import SUBSCRIPTION
from wire.errors import ErrorCode
from wire.messages.groups import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

NONE, FENCED = ErrorCode.NONE, ErrorCode.FENCED_INSTANCE_ID


@pytest.fixture
def brokers() -> Brokers:
    """Broker 1 coordinates all groups; 2 and 3 are in sync."""
    running = Brokers(
        3, replica_lag_time_max_ms=30_000, groups=GroupConfig(initial_rebalance_delay_ms=0)
    ).start()
    running.create_topic(OFFSETS_TOPIC, (1, 2, 3))
    running.run(600)  # the fetches of followers that began before are over
    return running


def join(brokers: Brokers, *, at: int = 1) -> int:
    protocols = (JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),)
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        group_instance_id="i",
        protocol_type="consumer",
        protocols=protocols,
    )
    return brokers.ask(at, request)


def sync(brokers: Brokers, member_id: str, *, at: int = 1, assignment: bytes = b"") -> int:
    assignments = (SyncGroupRequestAssignment(member_id=member_id, assignment=assignment),)
    request = SyncGroupRequest(
        group_id="g",
        generation_id=1,
        member_id=member_id,
        group_instance_id="i",
        assignments=assignments if assignment else (),
    )
    return brokers.ask(at, request, api_version=4)  # which names no protocol


def heartbeat(brokers: Brokers, member_id: str, *, at: int = 1) -> ErrorCode:
    request = HeartbeatRequest(
        group_id="g", generation_id=1, member_id=member_id, group_instance_id="i"
    )
    error: ErrorCode = brokers.call(at, request).error_code
    return error


def member(brokers: Brokers) -> str:
    """The only member of a stable group."""
    token = join(brokers)
    brokers.run(1)
    member_id: str = brokers.answer(token).member_id
    token = sync(brokers, member_id, assignment=b"all")
    brokers.run(50)
    assert brokers.answer(token).assignment == b"all"
    return member_id


def cut_followers(brokers: Brokers) -> None:
    brokers.cut = {(2, 1), (3, 1)}
    brokers.run(600)  # what they had asked before is answered, empty


def test_the_member_id_of_a_static_member_begins_with_its_instance_id(brokers: Brokers) -> None:
    assert member(brokers).startswith("i-")
    (group,) = brokers.call(1, DescribeGroupsRequest(groups=("g",))).groups
    assert [told.group_instance_id for told in group.members] == ["i"]


def test_a_new_member_id_is_told_when_the_in_sync_replicas_have_it(brokers: Brokers) -> None:
    old_id = member(brokers)
    cut_followers(brokers)
    token = join(brokers)
    assert token not in brokers.answers
    assert heartbeat(brokers, old_id) is FENCED
    brokers.cut.clear()
    brokers.run(2000)
    told = brokers.answer(token)
    assert (told.error_code, told.generation_id, told.skip_assignment) == (NONE, 1, True)

    brokers.change(OFFSETS_TOPIC, 0, leader=2)
    brokers.run(1000)
    assert heartbeat(brokers, told.member_id, at=2) is NONE
    assert heartbeat(brokers, old_id, at=2) is FENCED
    assert brokers.answer(sync(brokers, told.member_id, at=2)).assignment == b"all"


def test_a_member_that_could_not_be_replaced_in_time_is_still_there(brokers: Brokers) -> None:
    old_id = member(brokers)
    cut_followers(brokers)
    token = join(brokers)
    brokers.run(GroupConfig().commit_timeout_ms)
    told = brokers.answer(token)
    assert (told.error_code, told.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    assert heartbeat(brokers, old_id) is NONE


def test_a_member_that_comes_back_to_a_coordinator_that_resigns_is_sent_on(
    brokers: Brokers,
) -> None:
    old_id = member(brokers)
    cut_followers(brokers)
    token = join(brokers)
    brokers.change(OFFSETS_TOPIC, 0, leader=2)
    assert brokers.answer(token).error_code is ErrorCode.NOT_COORDINATOR
    brokers.cut.clear()
    brokers.run(1000)
    assert heartbeat(brokers, old_id, at=2) is NONE
