"""The partitions that a broker leads: when lag is looked for, and what comes after leadership."""

from dataclasses import replace

import pytest

from controller.metadata.partitions import PartitionState
from tests.broker.brokers import Brokers, batch_of


@pytest.fixture
def brokers() -> Brokers:
    return Brokers(3, replica_lag_time_max_ms=1000).start()


def test_lag_is_looked_for_twice_in_a_lag_time_and_only_while_something_is_led(
    brokers: Brokers,
) -> None:
    leaders = brokers.brokers[1].leaders
    brokers.run(10)
    assert leaders.deadline_ms() is None
    brokers.create_topic("t", (1, 2))
    due_ms = brokers.now_ms + 500
    brokers.run(499)
    assert leaders.deadline_ms() == due_ms
    brokers.run(1)
    assert leaders.deadline_ms() == due_ms + 500
    brokers.change("t", 0, leader=2)
    assert leaders.deadline_ms() is None


def test_partition_that_leads_no_more_is_left_alone_before_the_broker_is_told(
    brokers: Brokers,
) -> None:
    """Decisions and news of brokers may come in the turn in which leadership is lost."""
    brokers.create_topic("t", (1, 2, 3))
    brokers.cut |= {(2, 1), (3, 1)}
    brokers.run(600)
    brokers.produce(1, "t", 0, batch_of(b"a"), acks=1)
    broker, partition = brokers.brokers[1], brokers.partition(1, "t", 0)
    assert partition in broker.lag_watch
    state = PartitionState(replicas=(1, 2, 3), isr=(1, 2, 3), leader=2, leader_epoch=1)
    partition.apply(replace(state, partition_epoch=1), brokers.now_ms)
    broker.membership.isr_keeper.decided.append(partition)
    broker.leaders.take_decided(brokers.now_ms)
    broker.leaders.peers_changed(brokers.now_ms)
    broker.leaders.tick(brokers.now_ms + 500)
    assert partition not in broker.lag_watch
    assert partition.open_log.high_watermark == 0
