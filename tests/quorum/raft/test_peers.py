"""One request in flight to a node, and a pause after a failure."""

import pytest

from quorum.raft.peers import Peers
from tests.quorum.replicas import endpoint


def test_node_is_busy_until_it_answers() -> None:
    peers = Peers()
    peers.asked(1, endpoint(2))
    assert not peers.is_free(2, now_ms=0)
    assert peers.free_at_ms(2) is None
    assert peers.answered(1) == endpoint(2)
    assert peers.is_free(2, now_ms=0)


def test_answer_is_recognised_once() -> None:
    peers = Peers()
    peers.asked(1, endpoint(2))
    peers.answered(1)
    assert peers.answered(1) is None


def test_second_request_in_flight_is_a_bug() -> None:
    peers = Peers()
    peers.asked(1, endpoint(2))
    with pytest.raises(AssertionError, match="two requests"):
        peers.asked(2, endpoint(2))


def test_backoff_ends_at_its_time() -> None:
    peers = Peers()
    peers.back_off(2, until_ms=50)
    assert not peers.is_free(2, now_ms=49)
    assert peers.is_free(2, now_ms=50)
    assert peers.free_at_ms(2) == 50


def test_change_of_role_forgets_everything() -> None:
    peers = Peers()
    peers.asked(1, endpoint(2))
    peers.back_off(3, until_ms=50)
    peers.reset()
    assert not peers.busy
    assert peers.is_free(3, now_ms=0)
    assert peers.answered(1) is None, "an answer to an earlier role is of no interest"
