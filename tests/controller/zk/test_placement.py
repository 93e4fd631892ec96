"""Seed 004's replica assignment: partition i to broker (i mod n), its j-th replica j further on."""

from hypothesis import given
from hypothesis import strategies as st

from controller.zk.admin_requests import assign


def test_first_replica_goes_round_and_the_others_follow_it() -> None:
    placed = [assign((1, 4, 7), partition=i, factor=2) for i in range(4)]
    assert placed == [(1, 4), (4, 7), (7, 1), (1, 4)]


@given(st.integers(1, 7), st.integers(1, 40), st.data())
def test_replicas_are_different_and_leaders_are_even(
    count: int, partitions: int, data: st.DataObject
) -> None:
    brokers = tuple(range(10, 10 + count))
    factor = data.draw(st.integers(1, count))
    placed = [assign(brokers, partition=i, factor=factor) for i in range(partitions)]
    assert all(len(set(each)) == factor for each in placed)
    leaders = [sum(each[0] == broker for each in placed) for broker in brokers]
    assert max(leaders) - min(leaders) <= 1
