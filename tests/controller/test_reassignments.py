"""Reassignments: begun, completed by ISR changes, redirected, cancelled, listed."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from controller.decisions import reassignments
from controller.decisions.existing_topics import decide_create_partitions, decide_delete_topics
from controller.decisions.failover import leave_isrs
from controller.decisions.reassignments import decide_alter_reassignments, list_reassignments
from controller.decisions.replica_reports import decide_alter_partition
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, PartitionState
from controller.metadata.reassignment import assignment_of, reverted, towards
from tests.controller.clusters import (
    CONFIG,
    TOPIC,
    cluster,
    config,
    directory,
    fenced,
    partition,
    registered,
    step,
    with_topic,
)
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    BrokerState,
    IsrPartition,
    IsrTopic,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
)
from wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from wire.metadata_records import PartitionChangeRecord, PartitionRecord
from wire.primitives import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED

SIX = (1, 2, 3, 4, 5, 6)


def one(*replicas: int, **others: Any) -> MetadataImage:
    """Six brokers that are up, and one partition."""
    return with_topic(cluster(*SIX), partition(0, replicas, **others))


def request(
    *targets: Sequence[int] | None, name: str = "t", **others: Any
) -> AlterPartitionReassignmentsRequest:
    """A target for each partition; None cancels."""
    partitions = tuple(
        ReassignablePartition(
            partition_index=index, replicas=None if target is None else tuple(target)
        )
        for index, target in enumerate(targets)
    )
    made = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name=name, partitions=partitions),)
    )
    return replace(made, **others)


def moved(image: MetadataImage, *targets: Sequence[int] | None) -> MetadataImage:
    decision = decide_alter_reassignments(image, request(*targets), CONFIG)
    results = decision.response.responses[0].partitions
    assert [result.error_code for result in results] == [ErrorCode.NONE] * len(targets), results
    return step(image, *decision.changes)


def refused(
    image: MetadataImage, target: Sequence[int] | None, **others: Any
) -> ReassignablePartitionResponse:
    decision = decide_alter_reassignments(image, request(target, **others), CONFIG)
    assert decision.changes == ()
    return decision.response.responses[0].partitions[0]


def state(image: MetadataImage, index: int = 0) -> PartitionState:
    found = image.partition(TOPIC, index)
    assert found is not None
    return found


def with_isr(image: MetadataImage, *isr: int) -> tuple[MetadataImage, ErrorCode]:
    """The leader asks for another ISR."""
    now = state(image)
    asked = IsrPartition(
        partition_index=0,
        leader_epoch=now.leader_epoch,
        partition_epoch=now.partition_epoch,
        new_isr_with_epochs=tuple(BrokerState(broker_id=member) for member in isr),
    )
    wanted = AlterPartitionRequest(
        broker_id=now.leader,
        broker_epoch=100 + now.leader,
        topics=(IsrTopic(topic_id=TOPIC, partitions=(asked,)),),
    )
    decision = decide_alter_partition(image, wanted, CONFIG)
    error = decision.response.topics[0].partitions[0].error_code
    return step(image, *decision.changes), error


def unclean(image: MetadataImage) -> MetadataImage:
    return step(image, config("unclean.leader.election.enable", "true"))


# --- where the replicas are to go -----------------------------------------------------------


def plan(
    replicas: Sequence[int], target: Sequence[int], *, adding: Sequence[int] = ()
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    now = PartitionState(
        replicas=tuple(replicas),
        isr=tuple(replicas),
        leader=replicas[0],
        adding_replicas=tuple(adding),
    )
    to = towards(now, tuple(target), directory)
    assert to.staying == tuple(target)
    return to.replicas, to.adding, to.removing


@pytest.mark.parametrize(
    ("now", "target", "expected"),
    [
        ((1, 2, 3), (4, 5, 6), ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))),
        ((1, 2, 3), (3, 1, 2), ((3, 1, 2), (), ())),
        ((1, 2, 3), (1, 2, 3, 4), ((1, 2, 3, 4), (4,), ())),
        ((3, 2, 1), (2,), ((2, 1, 3), (), (1, 3))),
        ((1, 2, 3), (3, 4, 2), ((3, 4, 2, 1), (4,), (1,))),
    ],
)
def test_target_comes_first_and_what_goes_behind_it(
    now: Sequence[int], target: Sequence[int], expected: object
) -> None:
    assert plan(now, target) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ((7, 8, 9), ((7, 8, 9, 1, 2, 3, 4, 5, 6), (4, 5, 6, 7, 8, 9), (1, 2, 3, 4, 5, 6))),
        ((4, 5, 1), ((4, 5, 1, 2, 3, 6), (4, 5, 6), (2, 3, 6))),
        ((1, 2, 3), ((1, 2, 3, 4, 5, 6), (4, 5, 6), (4, 5, 6))),
    ],
)
def test_second_reassignment_remembers_where_the_first_began(
    target: Sequence[int], expected: object
) -> None:
    assert plan((4, 5, 6, 1, 2, 3), target, adding=(4, 5, 6)) == expected


def test_new_replicas_lie_in_the_only_directory_or_where_the_broker_likes() -> None:
    image = cluster(1, 2, registered(3), registered(4, log_dirs=(directory(4), directory(44))))
    image = with_topic(image, partition(0, (1, 2)))
    after = state(moved(image, (3, 4, 2)))
    assert after.replicas == (3, 4, 2, 1)
    assert after.directories == (directory(3), DIRECTORY_UNASSIGNED, directory(2), directory(1))


def test_directories_are_not_recorded_before_they_can_be() -> None:
    bare = [registered(broker, log_dirs=()) for broker in (1, 2)]
    image = with_topic(cluster(*bare, version=16), partition(0, (1,), directories=()))
    decision = decide_alter_reassignments(image, request((2,)), CONFIG)
    (record,) = decision.changes
    assert isinstance(record, PartitionChangeRecord)
    assert record.directories is None
    assert state(step(image, record)).directories == (DIRECTORY_MIGRATING,) * 2


# --- the life of a reassignment --------------------------------------------------------------


def test_replicas_are_added_before_any_is_removed() -> None:
    image = moved(one(1, 2, 3), (4, 5, 6))
    now = state(image)
    assert now.replicas == (4, 5, 6, 1, 2, 3)
    assert (now.adding_replicas, now.removing_replicas) == ((4, 5, 6), (1, 2, 3))
    assert (now.isr, now.leader) == ((1, 2, 3), 1)
    assert (now.leader_epoch, now.partition_epoch) == (5, 11)

    image, error = with_isr(image, 1, 2, 3, 4, 5)
    assert error is ErrorCode.NONE
    assert state(image).replicas == (4, 5, 6, 1, 2, 3)

    image, error = with_isr(image, 1, 2, 3, 4, 5, 6)
    assert error is ErrorCode.NEW_LEADER_ELECTED
    now = state(image)
    assert (now.replicas, now.isr, now.leader) == ((4, 5, 6), (4, 5, 6), 4)
    assert (now.adding_replicas, now.removing_replicas) == ((), ())
    assert now.directories == tuple(map(directory, (4, 5, 6)))
    assert now.leader_epoch == 6


def test_order_alone_changes_at_once_and_moves_no_leader() -> None:
    now = state(moved(one(1, 2, 3), (3, 1, 2)))
    assert (now.replicas, now.isr, now.leader) == ((3, 1, 2), (3, 1, 2), 1)
    assert (now.adding_replicas, now.removing_replicas) == ((), ())
    assert now.leader_epoch == 5


def test_replicas_that_are_in_sync_are_all_that_stays() -> None:
    """Taking replicas away is done at once, and raises the leader epoch: they must not fetch."""
    now = state(moved(one(1, 2, 3), (1, 2)))
    assert (now.replicas, now.isr, now.leader) == ((1, 2), (1, 2), 1)
    assert now.leader_epoch == 6


def test_removal_waits_for_a_replica_that_stays_and_lags() -> None:
    image = moved(one(1, 2, 3, isr=(1, 2)), (2, 3))
    assert state(image).removing_replicas == (1,)
    assert state(image).replicas == (2, 3, 1)
    image, _ = with_isr(image, 1, 2, 3)
    assert state(image).replicas == (2, 3)


def test_same_target_again_records_nothing() -> None:
    image = moved(one(1, 2, 3), (4, 2, 3))
    assert decide_alter_reassignments(image, request((4, 2, 3)), CONFIG).changes == ()


def test_fenced_target_is_waited_for() -> None:
    image = with_topic(cluster(1, 2, registered(3, fenced=True)), partition(0, (1, 2)))
    now = state(moved(image, (3, 2)))
    assert (now.adding_replicas, now.isr, now.leader) == ((3,), (2, 1), 1)


def test_failure_of_the_last_replica_in_the_way_completes() -> None:
    """A broker fails that the ISR needed no more: its removal is a partition change like others."""
    image = with_topic(
        cluster(1, 2, 3),
        partition(
            0,
            (2, 3, 1),
            isr=(2, 3, 1),
            leader=1,
            removing_replicas=(1,),
            adding_replicas=(3,),
        ),
    )
    image = step(image, *leave_isrs(image, 1, CONFIG), fenced(1))
    now = state(image)
    assert (now.replicas, now.isr, now.leader) == ((2, 3), (2, 3), 2)


def test_redirected_reassignment_ends_at_the_second_target() -> None:
    image = moved(moved(one(1, 2, 3), (4, 2, 3)), (5, 2, 3))
    now = state(image)
    assert now.replicas == (5, 2, 3, 1, 4)
    image, _ = with_isr(image, 1, 2, 3, 4)
    assert state(image).replicas == (5, 2, 3, 1, 4)
    image, _ = with_isr(image, 1, 2, 3, 5)
    now = state(image)
    assert (now.replicas, now.isr) == ((5, 2, 3), (5, 2, 3))


def test_partition_that_is_named_twice_goes_where_it_is_told_last() -> None:
    image = one(1, 2, 3)
    twice = tuple(
        ReassignablePartition(partition_index=0, replicas=target)
        for target in ((4, 2, 3), (5, 2, 3))
    )
    asked = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name="t", partitions=twice),)
    )
    decision = decide_alter_reassignments(image, asked, CONFIG)
    assert decision.is_atomic
    after = step(image, *decision.changes)
    assert assignment_of(state(after)).staying == (5, 2, 3)


# --- cancellation ---------------------------------------------------------------------------


def test_cancellation_goes_back_to_the_replicas_of_the_beginning() -> None:
    image = moved(one(1, 2, 3), (4, 5, 6))
    image, _ = with_isr(image, 1, 2, 3, 4)
    now = state(moved(image, None))
    assert (now.replicas, now.isr, now.leader) == ((1, 2, 3), (1, 2, 3), 1)
    assert (now.adding_replicas, now.removing_replicas) == ((), ())
    assert now.leader_epoch == 6, "what was added must not fetch any more"


def test_cancellation_of_an_overtaken_reassignment_goes_back_all_the_way() -> None:
    image = moved(moved(one(1, 2), (3, 4)), (5, 6))
    assert state(moved(image, None)).replicas == (1, 2)


def test_cancellation_moves_leadership_back() -> None:
    image = with_topic(
        cluster(*SIX),
        partition(
            0,
            (4, 1, 2),
            isr=(4, 2),
            leader=4,
            adding_replicas=(4,),
            removing_replicas=(1,),
        ),
    )
    now = state(moved(image, None))
    assert (now.replicas, now.isr, now.leader) == ((1, 2), (2,), 2)


ONLY_NEW = partition(
    0, (4, 1, 2), isr=(4,), leader=4, adding_replicas=(4,), removing_replicas=(1, 2)
)


def test_cancellation_that_could_lose_records_needs_leave_of_the_topic() -> None:
    image = with_topic(cluster(*SIX), ONLY_NEW)
    result = refused(image, None)
    assert result.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert result.error_message is not None
    assert "unclean leader election" in result.error_message
    now = state(moved(unclean(image), None))
    assert (now.replicas, now.isr, now.leader) == ((1, 2), (1,), 1)
    assert now.leader_recovery_state == 1


def test_cancellation_elects_who_is_up() -> None:
    image = unclean(with_topic(cluster(registered(1, fenced=True), 2, 4), ONLY_NEW))
    now = state(moved(image, None))
    assert (now.isr, now.leader, now.leader_recovery_state) == ((2,), 2, 1)


def test_cancelled_partition_without_anybody_up_has_no_leader() -> None:
    down = [registered(broker, fenced=True) for broker in (1, 2)]
    now = state(moved(unclean(with_topic(cluster(*down, 4), ONLY_NEW)), None))
    assert (now.replicas, now.isr, now.leader) == ((1, 2), (1,), NO_LEADER)


def test_nothing_to_cancel() -> None:
    result = refused(one(1, 2, 3), None)
    assert result.error_code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_reverted_keeps_directories() -> None:
    image = moved(one(1, 2, 3), (4, 5, 6))
    before = reverted(state(image))
    assert before.directories == tuple(map(directory, (1, 2, 3)))


# --- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ((), "an empty replica list."),
        ((1, 9, 8), "broker 8, but no such broker is registered."),
        ((2, 1, 2), "the broker 2 more than once."),
    ],
)
def test_targets_that_cannot_be(target: Sequence[int], says: str) -> None:
    result = refused(one(1, 2, 3), target)
    assert result.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert result.error_message == f"The manual partition assignment includes {says}"


def test_target_must_have_a_directory_that_is_not_cordoned() -> None:
    full = registered(4, cordoned_log_dirs=(directory(4),))
    image = with_topic(cluster(1, 2, 3, full, version=30), partition(0, (1, 2, 3)))
    says = "broker 4, but all its log directories are cordoned."
    result = refused(image, (1, 2, 4))
    assert result.error_message == f"The manual partition assignment includes {says}"


def test_factor_may_be_held() -> None:
    image = one(1, 2, 3)
    result = refused(image, (1, 2), allow_replication_factor_change=False)
    assert result.error_code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert result.error_message == "The replication factor is changed from 3 to 2"
    assert refused(image, (), allow_replication_factor_change=False).error_code is (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT
    ), "the target is looked at first"


def test_held_factor_is_that_of_the_running_target() -> None:
    image = moved(one(1, 2, 3), (4, 5))
    result = refused(image, (4, 5, 6), allow_replication_factor_change=False)
    assert result.error_message == "The replication factor is changed from 2 to 3"
    fine = request((6, 5), allow_replication_factor_change=False)
    assert decide_alter_reassignments(image, fine, CONFIG).changes


def test_partitions_of_a_request_fail_by_themselves() -> None:
    image = with_topic(cluster(*SIX), partition(0, (1, 2)), partition(1, (1, 2)))
    decision = decide_alter_reassignments(image, request((3, 2), (9,), (1,)), CONFIG)
    results = decision.response.responses[0].partitions
    assert [result.error_code for result in results] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert len(decision.changes) == 1


def test_too_many_partitions_are_refused_as_a_whole() -> None:
    decision = decide_alter_reassignments(one(1), request(*[(1,)] * 10_001), CONFIG)
    assert decision.response.error_code is ErrorCode.POLICY_VIOLATION
    assert decision.changes == ()


@pytest.mark.parametrize(("count", "error"), [(3, "NONE"), (4, "POLICY_VIOLATION")])
def test_as_many_partitions_as_the_limit_says_may_move(
    count: int, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reassignments, "CHANGES_MAX", 3)
    image = with_topic(cluster(1, 2), *(partition(index, (1,)) for index in range(4)))
    decision = decide_alter_reassignments(image, request(*[(2,)] * count), CONFIG)
    assert decision.response.error_code.name == error
    assert len(decision.changes) == (count if error == "NONE" else 0)


# --- beside other requests ------------------------------------------------------------------


def test_new_partitions_have_as_many_replicas_as_one_that_moves() -> None:
    """So does Kafka: the replicas that come and those that go are counted alike."""
    image = moved(one(1, 2), (3, 2))
    more = CreatePartitionsTopic(name="t", count=2, assignments=None)
    decision = decide_create_partitions(image, CreatePartitionsRequest(topics=(more,)), Random(1))
    (record,) = decision.changes
    assert isinstance(record, PartitionRecord)
    assert len(record.replicas) == 3


def test_topic_that_moves_can_be_deleted() -> None:
    image = moved(one(1, 2), (3, 2))
    gone = DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),), timeout_ms=1)
    after = step(image, *decide_delete_topics(image, gone, CONFIG).changes)
    assert list_reassignments(after, ListPartitionReassignmentsRequest()).topics == ()


# --- list -----------------------------------------------------------------------------------


def test_list_tells_what_moves() -> None:
    image = with_topic(cluster(*SIX), *(partition(index, (1, 2)) for index in range(3)))
    image = moved(image, (3, 2), (2, 1), (1, 2, 4))
    ongoing = (
        OngoingPartitionReassignment(
            partition_index=0, replicas=(3, 2, 1), adding_replicas=(3,), removing_replicas=(1,)
        ),
        OngoingPartitionReassignment(partition_index=2, replicas=(1, 2, 4), adding_replicas=(4,)),
    )
    (everything,) = list_reassignments(image, ListPartitionReassignmentsRequest()).topics
    assert (everything.name, everything.partitions) == ("t", ongoing)
    asked = ListPartitionReassignmentsRequest(
        topics=(
            ListPartitionReassignmentsTopics(name="t", partition_indexes=(1, 2, 7)),
            ListPartitionReassignmentsTopics(name="unknown", partition_indexes=(0,)),
        )
    )
    (some,) = list_reassignments(image, asked).topics
    assert some.partitions == ongoing[1:]
