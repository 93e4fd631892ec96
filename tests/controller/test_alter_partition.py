"""AlterPartition: Kafka's checks in Kafka's order."""

from typing import Any
from uuid import UUID

import pytest

from controller.decisions.replica_reports import decide_alter_partition
from controller.metadata.alter_partition import refusal
from controller.metadata.image import MetadataImage
from tests.controller.clusters import (
    CONFIG,
    TOPIC,
    cluster,
    directory,
    partition,
    registered,
    step,
    with_topic,
)
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.partitions import (
    AlterPartitionRequest,
    BrokerState,
    IsrPartition,
    IsrPartitionResult,
    IsrTopic,
)
from wire.metadata_records import PartitionChangeRecord


def image(**others: Any) -> MetadataImage:
    """Brokers 1 to 3 are up, 4 is fenced, 5 is leaving, 6 unknown; 1 leads, 3 is out of sync."""
    return with_topic(
        cluster(1, 2, 3, registered(4, fenced=True), registered(5, in_controlled_shutdown=True)),
        partition(0, (1, 2, 3, 4, 5, 6), isr=(1, 2), **others),
    )


def asked(*members: int | BrokerState, **others: object) -> IsrPartition:
    made = IsrPartition(
        partition_index=0,
        leader_epoch=5,
        partition_epoch=10,
        new_isr_with_epochs=tuple(
            member if isinstance(member, BrokerState) else BrokerState(broker_id=member)
            for member in members
        ),
    )
    return replace(made, **others)


def request(
    *partitions: IsrPartition, broker_id: int = 1, epoch: int = 101, topic_id: UUID = TOPIC
) -> AlterPartitionRequest:
    return AlterPartitionRequest(
        broker_id=broker_id,
        broker_epoch=epoch,
        topics=(IsrTopic(topic_id=topic_id, partitions=partitions),),
    )


# In the order of the checks: each row would also fail every later one that it can.
IN_ORDER = [
    ("newer leader epoch", asked(9, leader_epoch=6, partition_epoch=9), 2, "NOT_CONTROLLER"),
    ("newer partition epoch", asked(9, leader_epoch=4, partition_epoch=11), 2, "NOT_CONTROLLER"),
    ("older leader epoch", asked(9, leader_epoch=4, partition_epoch=9), 2, "FENCED_LEADER_EPOCH"),
    ("not the leader", asked(9, partition_epoch=9), 2, "INVALID_REQUEST"),
    ("older partition epoch", asked(9, partition_epoch=9), 1, "INVALID_UPDATE_VERSION"),
    ("no members", asked(), 1, "INVALID_REQUEST"),
    ("a member twice", asked(1, 1, 4), 1, "INVALID_REQUEST"),
    ("not a replica", asked(1, 9), 1, "INVALID_REQUEST"),
    ("without the leader", asked(2, 4), 1, "INVALID_REQUEST"),
    ("recovering, not alone", asked(1, 4, leader_recovery_state=1), 1, "INVALID_REQUEST"),
    ("recovering again", asked(1, leader_recovery_state=1), 1, "INVALID_REQUEST"),
    ("no such recovery state", asked(1, leader_recovery_state=7), 1, "INVALID_REQUEST"),
    ("fenced member", asked(1, 4), 1, "INELIGIBLE_REPLICA"),
    ("leaving member", asked(1, 5), 1, "INELIGIBLE_REPLICA"),
    ("unregistered member", asked(1, 6), 1, "INELIGIBLE_REPLICA"),
    (
        "member of another life",
        asked(1, BrokerState(broker_id=3, broker_epoch=102)),
        1,
        "INELIGIBLE_REPLICA",
    ),
    ("member of this life", asked(1, BrokerState(broker_id=3, broker_epoch=103)), 1, "NONE"),
    ("member of no epoch", asked(1, 3), 1, "NONE"),
]


@pytest.mark.parametrize(
    ("data", "broker_id", "expected"),
    [row[1:] for row in IN_ORDER],
    ids=[row[0] for row in IN_ORDER],
)
def test_first_check_that_fails_names_the_error(
    data: IsrPartition, broker_id: int, expected: str
) -> None:
    now = image()
    state = now.partition(TOPIC, 0)
    assert state is not None
    assert refusal(now, state, data, broker_id=broker_id) is ErrorCode[expected]


@pytest.mark.parametrize(
    ("members", "expected"), [((1,), ErrorCode.NONE), ((1, 2), ErrorCode.INVALID_REQUEST)]
)
def test_leader_that_goes_on_recovering_is_alone_in_its_isr(
    members: tuple[int, ...], expected: ErrorCode
) -> None:
    now = image(leader_recovery_state=1)
    state = now.partition(TOPIC, 0)
    assert state is not None
    wanted = asked(*members, leader_recovery_state=1)
    assert refusal(now, state, wanted, broker_id=1) is expected


@pytest.mark.parametrize(("broker_id", "epoch"), [(1, 100), (1, 102), (1, -1), (9, 101)])
def test_request_of_another_life_is_refused_as_a_whole(broker_id: int, epoch: int) -> None:
    decision = decide_alter_partition(
        image(), request(asked(1, 3), broker_id=broker_id, epoch=epoch), CONFIG
    )
    assert decision.response.error_code is ErrorCode.STALE_BROKER_EPOCH
    assert decision.response.topics == ()
    assert decision.changes == ()


def only(decision: object) -> IsrPartitionResult:
    result = decision.response.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert isinstance(result, IsrPartitionResult)
    return result


def test_unknown_topic_and_partition() -> None:
    unknown = decide_alter_partition(image(), request(asked(1), topic_id=UUID(int=9)), CONFIG)
    assert only(unknown).error_code is ErrorCode.UNKNOWN_TOPIC_ID
    data = asked(1, partition_index=3)
    missing = decide_alter_partition(image(), request(data), CONFIG)
    assert only(missing).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert only(missing).partition_index == 3


def test_accepted_change_is_recorded_and_answered_with_the_new_state() -> None:
    decision = decide_alter_partition(image(), request(asked(3, 2, 1)), CONFIG)
    (record,) = decision.changes
    assert record == PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(1, 2, 3))
    assert only(decision) == IsrPartitionResult(
        partition_index=0, leader_id=1, leader_epoch=5, isr=(1, 2, 3), partition_epoch=11
    )


def test_unchanged_isr_raises_the_epoch_that_a_held_request_names() -> None:
    decision = decide_alter_partition(image(), request(asked(2, 1)), CONFIG)
    (record,) = decision.changes
    assert record == PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(1, 2))
    assert only(decision).isr == (1, 2)
    assert only(decision).partition_epoch == 11


def test_recovery_is_recorded() -> None:
    now = image(leader_recovery_state=1)
    now = step(now, PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(1,)))
    decision = decide_alter_partition(now, request(asked(1, partition_epoch=11)), CONFIG)
    (record,) = decision.changes
    assert isinstance(record, PartitionChangeRecord)
    assert (record.leader_recovery_state, record.isr) == (0, None)
    assert only(decision).leader_recovery_state == 0


def test_partitions_of_a_request_fail_by_themselves() -> None:
    now = with_topic(cluster(1, 2, 3), partition(0, isr=(1, 2)), partition(1, isr=(1, 2)))
    good, bad = asked(1, 2, 3), asked(1, 9, partition_index=1)
    decision = decide_alter_partition(now, request(good, bad), CONFIG)
    errors = [item.error_code for item in decision.response.topics[0].partitions]
    assert errors == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert len(decision.changes) == 1


def test_second_change_of_a_partition_in_one_request_is_out_of_date() -> None:
    decision = decide_alter_partition(image(), request(asked(1, 2, 3), asked(1)), CONFIG)
    errors = [item.error_code for item in decision.response.topics[0].partitions]
    assert errors == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
    assert len(decision.changes) == 1


def test_leader_that_its_change_replaces_is_told_so() -> None:
    """The ISR completes a reassignment that removes the leader: recorded, and refused."""
    now = with_topic(
        cluster(1, 2, 3),
        partition(
            0,
            (3, 2, 1),
            isr=(1, 2),
            removing_replicas=(1,),
            adding_replicas=(3,),
            directories=tuple(map(directory, (3, 2, 1))),
        ),
    )
    decision = decide_alter_partition(now, request(asked(1, 2, 3)), CONFIG)
    assert only(decision).error_code is ErrorCode.NEW_LEADER_ELECTED
    after = step(now, *decision.changes).partition(TOPIC, 0)
    assert after is not None
    assert (after.replicas, after.isr, after.leader) == ((3, 2), (3, 2), 3)
    assert after.leader_epoch == 6
