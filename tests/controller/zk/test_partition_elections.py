"""Who leads, as the ZooKeeper designs ask the rules of both modes."""

import pytest

from controller.metadata.election import Election
from controller.metadata.partitions import PartitionState
from controller.zk.partition_states import elected, initial, reassigned

STATE = PartitionState(replicas=(1, 2, 3), isr=(1, 2), leader=1, leader_epoch=4, partition_epoch=9)


def outcome(state: PartitionState | None) -> tuple[int, tuple[int, ...], int] | None:
    return None if state is None else (state.leader, state.isr, state.leader_epoch)


@pytest.mark.parametrize(
    ("live", "how", "expected"),
    [
        ({1, 2, 3}, Election.UNCLEAN, None),
        ({2, 3}, Election.UNCLEAN, (2, (2,), 5)),
        ({1, 3}, Election.UNCLEAN, (1, (1,), 5)),  # a shrunk ISR raises the epoch, too
        ({3}, Election.UNCLEAN, (3, (3,), 5)),
        ({3}, Election.ONLINE, (-1, (1, 2), 5)),
        ({9}, Election.UNCLEAN, (-1, (1, 2), 5)),
    ],
)
def test_leader_is_a_live_member_of_the_isr_then_any_live_replica_then_nobody(
    live: set[int], how: Election, expected: object
) -> None:
    assert outcome(elected(STATE, live, how)) == expected


def test_version_of_the_znode_stays_that_which_was_read() -> None:
    after = elected(STATE, {2, 3}, Election.UNCLEAN)
    assert after is not None
    assert after.partition_epoch == STATE.partition_epoch


def test_new_partition_is_led_by_its_first_live_replica_and_all_live_are_in_sync() -> None:
    assert outcome(initial((1, 2, 3), {2, 3})) == (2, (2, 3), 0)
    assert initial((1, 2), {3}) is None


def test_reassigned_partition_keeps_its_leader_if_that_stays() -> None:
    all_in_sync = PartitionState(replicas=(1, 2), isr=(1, 2, 3), leader=1, leader_epoch=4)
    assert outcome(reassigned(all_in_sync, (3, 1), {1, 2, 3})) == (1, (3, 1), 5)
    assert outcome(reassigned(all_in_sync, (3, 2), {1, 2, 3})) == (3, (3, 2), 5)
