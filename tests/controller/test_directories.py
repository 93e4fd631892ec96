"""AssignReplicasToDirs and failed directories: who can lead depends on where replicas lie."""

from typing import Any
from uuid import UUID

import pytest

from controller.decisions.brokers import Heard, decide_heartbeat
from controller.decisions.replica_reports import decide_assign_replicas
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, PartitionState
from tests.controller.clusters import (
    CONFIG,
    TOPIC,
    cluster,
    directory,
    heartbeat,
    partition,
    registered,
    step,
    with_topic,
)
from wire.errors import ErrorCode
from wire.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    DirectoryPartition,
    DirectoryTopic,
)
from wire.primitives import DIRECTORY_LOST, DIRECTORY_UNASSIGNED

SECOND = directory(11)  # of broker 1, which has two


def image(**others: Any) -> MetadataImage:
    two = registered(1, log_dirs=(directory(1), SECOND))
    made = partition(0, (1, 2), directories=(DIRECTORY_UNASSIGNED, directory(2)), **others)
    return with_topic(cluster(two, 2, 3), made)


def request(
    where: UUID,
    *,
    broker_id: int = 1,
    epoch: int = 101,
    index: int = 0,
    topic_id: UUID = TOPIC,
) -> AssignReplicasToDirsRequest:
    topic = DirectoryTopic(
        topic_id=topic_id, partitions=(DirectoryPartition(partition_index=index),)
    )
    return AssignReplicasToDirsRequest(
        broker_id=broker_id,
        broker_epoch=epoch,
        directories=(DirectoryData(id_=where, topics=(topic,)),),
    )


def assigned(
    now: MetadataImage, asked: AssignReplicasToDirsRequest
) -> tuple[ErrorCode, MetadataImage]:
    decision = decide_assign_replicas(now, asked, CONFIG)
    assert decision.response.error_code is ErrorCode.NONE
    (where,) = decision.response.directories
    assert where.id_ == asked.directories[0].id_
    after = step(now, *decision.changes) if decision.changes else now
    return where.topics[0].partitions[0].error_code, after


def state(now: MetadataImage) -> PartitionState:
    found = now.partition(TOPIC, 0)
    assert found is not None
    return found


def test_directory_of_a_replica_is_noted() -> None:
    error, after = assigned(image(), request(SECOND))
    assert error is ErrorCode.NONE
    now = state(after)
    assert now.directories == (SECOND, directory(2))
    assert (now.isr, now.leader) == ((1, 2), 1)
    assert (now.leader_epoch, now.partition_epoch) == (5, 11)


def test_known_directory_changes_nothing() -> None:
    _, after = assigned(image(), request(SECOND))
    assert decide_assign_replicas(after, request(SECOND), CONFIG).changes == ()


@pytest.mark.parametrize("where", [DIRECTORY_LOST, directory(77)])
def test_replica_in_a_directory_that_is_offline_leaves_the_isr(where: UUID) -> None:
    _, after = assigned(image(), request(where))
    now = state(after)
    assert now.directories == (where, directory(2))
    assert (now.isr, now.leader, now.leader_epoch) == ((2,), 2, 6)


@pytest.mark.parametrize("named", [(), (DIRECTORY_LOST,), (directory(1),)])
def test_no_broker_has_a_lost_directory_online(named: tuple[UUID, ...]) -> None:
    broker = cluster(registered(1, log_dirs=named)).brokers[1]
    assert not broker.has_online(DIRECTORY_LOST)
    assert broker.has_online(DIRECTORY_UNASSIGNED)


def test_leaderless_partition_gets_a_leader_once_its_directory_is_online() -> None:
    lost = with_topic(
        cluster(registered(1, log_dirs=(directory(1), SECOND)), 2),
        partition(0, (1,), leader=NO_LEADER, directories=(DIRECTORY_LOST,)),
    )
    _, after = assigned(lost, request(SECOND))
    assert state(after).leader == 1


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (request(SECOND, topic_id=UUID(int=9)), ErrorCode.UNKNOWN_TOPIC_ID),
        (request(SECOND, index=4), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (request(SECOND, broker_id=3, epoch=103), ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_partitions_fail_by_themselves(
    asked: AssignReplicasToDirsRequest, error: ErrorCode
) -> None:
    now = image()
    found, after = assigned(now, asked)
    assert found is error
    assert after is now


@pytest.mark.parametrize(("broker_id", "epoch"), [(1, 100), (9, 109)])
def test_another_life_of_the_broker_is_refused(broker_id: int, epoch: int) -> None:
    asked = request(SECOND, broker_id=broker_id, epoch=epoch)
    response = decide_assign_replicas(image(), asked, CONFIG).response
    assert response.error_code is ErrorCode.STALE_BROKER_EPOCH


def test_older_metadata_has_no_directories() -> None:
    now = with_topic(cluster(1, 2, version=16), partition(0, (1, 2), directories=()))
    response = decide_assign_replicas(now, request(SECOND), CONFIG).response
    assert response.error_code is ErrorCode.UNSUPPORTED_VERSION


def test_broker_that_reports_a_failed_directory_keeps_its_other_replicas() -> None:
    two = registered(1, log_dirs=(directory(1), SECOND))
    now = with_topic(
        cluster(two, 2),
        partition(0, (1, 2)),
        partition(1, (1, 2), directories=(SECOND, directory(2))),
    )
    beat = heartbeat(1, 101, 99, offline_log_dirs=(SECOND,))
    heard = Heard(shutdown_offset=0, lowest_active_offset=0)
    now = step(now, *decide_heartbeat(now, beat, CONFIG, heard).changes)
    assert {index: s.leader for index, s in now.partitions_of(TOPIC)} == {0: 1, 1: 2}
    assert now.brokers[1].log_dirs == (directory(1),)
    assert decide_heartbeat(now, beat, CONFIG, heard).changes == ()
