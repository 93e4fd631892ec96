"""The client's states and transitions, as seed 001 lists them."""

import pytest

from wire.zk.session import NEXT_STATES, Session, SessionChanged, SessionState

NOT_CONNECTED, CONNECTING, CONNECTED, CLOSED = SessionState


def changed(state: SessionState) -> SessionChanged:
    session_id = 7 if state is CONNECTED else 0
    return SessionChanged(state=state, session_id=session_id, timeout_ms=1000)


def at(*states: SessionState, now_ms: int = 0) -> Session:
    session = Session()
    for state in states:
        session.become(changed(state), now_ms)
    return session


def test_four_states_have_five_transitions() -> None:
    transitions = {(before, after) for before, each in NEXT_STATES.items() for after in each}
    assert transitions == {
        (NOT_CONNECTED, CONNECTING),
        (CONNECTING, CONNECTED),
        (CONNECTING, CLOSED),
        (CONNECTED, CONNECTING),
        (CONNECTED, CLOSED),
    }


@pytest.mark.parametrize("state", [CONNECTED, CLOSED])
def test_client_that_is_not_connected_must_connect_first(state: SessionState) -> None:
    with pytest.raises(AssertionError):
        at(state)


def test_closed_session_is_followed_by_another() -> None:
    session = at(CONNECTING, CONNECTED, CLOSED)
    assert session.id == 7
    session.become(changed(CONNECTING), 0)
    assert session.id == 0
    assert session.may_have_expired_at_ms is None


def test_session_that_cannot_be_heard_may_have_expired_when_its_time_is_over() -> None:
    session = at(CONNECTING, CONNECTED, now_ms=100)
    assert session.may_have_expired_at_ms is None
    session.become(SessionChanged(state=CONNECTING, session_id=7, timeout_ms=1000), 5000)
    assert session.id == 7
    assert session.may_have_expired_at_ms == 6000
