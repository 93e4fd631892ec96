"""Replicas while their logs are opened."""

from uuid import UUID

import pytest

from broker.partition.partition import LeaderOf, Offline, Opening, Partition
from controller.metadata.partitions import PartitionState
from quorum.core.effects import Event, Opened, OpenLog, StorageFailed, Token
from quorum.core.log_state import LogState
from tests.broker.zk.test_obeying import Stand
from wire.errors import ErrorCode
from wire.primitives import ZERO_UUID

DIRECTORY, OTHER = UUID(int=1), UUID(int=2)
STATE = PartitionState(replicas=(1, 2), isr=(1,), leader=1)


@pytest.fixture
def stand() -> Stand:
    return Stand()


def ordered(stand: Stand) -> Token:
    """A replica of ours is to be there; the order to open its log."""
    stand.broker.replicas.obey("t", UUID(int=7), 0, STATE, 1000)
    (order,) = (each for each in stand.broker.take_effects() if isinstance(each, OpenLog))
    assert order.directory_id == DIRECTORY
    return order.token


def replica(stand: Stand, event: Event | None = None) -> Partition:
    if event is not None:
        stand.broker.receive(event, 1000)
    found = stand.broker.replicas.find("t", ZERO_UUID, 0)
    assert isinstance(found, Partition)
    return found


def test_replica_lies_where_its_log_was_found(stand: Stand) -> None:
    state = LogState(log="t-0", directory_id=OTHER)
    partition = replica(stand, Opened(token=ordered(stand), state=state))
    assert isinstance(partition.role, LeaderOf)
    assert partition.directory_id == OTHER


def test_replica_whose_log_cannot_be_opened_is_offline(stand: Stand) -> None:
    failed = StorageFailed(token=ordered(stand), log="t-0", reason="torn", directory_id=OTHER)
    partition = replica(stand, failed)
    assert partition.role == Offline(error=ErrorCode.KAFKA_STORAGE_ERROR, leader_epoch=0)


def test_replica_whose_directory_has_failed_stays_offline(stand: Stand) -> None:
    token = ordered(stand)
    assert isinstance(replica(stand).role, Opening)
    stand.broker.replicas.fail_directory(DIRECTORY, 1000)
    partition = replica(stand, Opened(token=token, state=LogState(log="t-0")))
    assert isinstance(partition.role, Offline)
    assert stand.broker.replicas.are_open
