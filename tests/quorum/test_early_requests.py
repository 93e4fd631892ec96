"""What a node holds before it can judge or serve: few, small, and for a while."""

import pytest

from quorum.core import early_requests
from quorum.core.early_requests import EarlyRequests
from quorum.core.effects import Effect, HangUp, Request


def asked(token: int, frame_bytes: int = 10) -> Request:
    return Request(token=token, body="x", frame=bytes(frame_bytes))


def test_what_is_held_comes_out_in_order_and_once() -> None:
    told: list[Effect] = []
    early = EarlyRequests(told.append)
    requests = [asked(3), asked(1), asked(2)]
    for request in requests:
        early.hold(request, 0)
    assert early.release() == requests
    assert early.release() == []
    assert (early.deadline_ms(), told) == (None, [])


def test_client_whose_time_is_up_loses_its_connection() -> None:
    told: list[Effect] = []
    early = EarlyRequests(told.append, hold_max_ms=100)
    early.hold(asked(1), 0)
    early.hold(asked(2), 50)
    assert early.deadline_ms() == 100
    early.tick(99)
    assert told == []
    early.tick(100)
    assert told == [HangUp(token=1)]
    assert early.deadline_ms() == 150


@pytest.mark.parametrize(("bound", "value"), [("HELD_MAX", 2), ("HELD_BYTES_MAX", 29)])
def test_what_is_too_much_is_not_held(
    bound: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_requests, bound, value)
    told: list[Effect] = []
    early = EarlyRequests(told.append, hold_max_ms=100)
    for token in (1, 2, 3):
        early.hold(asked(token), 10 * token)
    assert told == [HangUp(token=3)]
    early.tick(110)  # there is room again
    early.hold(asked(4), 115)
    assert told == [HangUp(token=3), HangUp(token=1)]
    assert [each.token for each in early.release()] == [2, 4]
