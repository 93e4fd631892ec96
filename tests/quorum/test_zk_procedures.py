"""Procedures: one after another, pipelined or not, and what becomes of them with the session."""

import pytest

from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_effects import ZkRequest, ZkResult
from quorum.zookeeper.zk_procedures import Procedure, Procedures, all_at_once, one, one_by_one
from wire.zk.session import (
    Checked,
    Error,
    Exists,
    Failed,
    Operation,
    Result,
    Session,
    SessionChanged,
    SessionState,
)

LOST = Failed(error=Error.CONNECTION_LOSS)
A, B = Exists(path="/a"), Exists(path="/b")


class Stand:
    """Procedures and whoever answers them."""

    def __init__(self, *, resumes: bool) -> None:
        self.outbox = Outbox("controller")
        self.session = Session()
        self.procedures = Procedures(self.outbox, self.session, resumes=resumes)
        self.log: list[object] = []
        self.asked: list[ZkRequest] = []

    def become(self, state: SessionState, session_id: int = 0) -> None:
        self.session.become(SessionChanged(state=state, session_id=session_id, timeout_ms=1), 0)
        self.procedures.session_changed()

    def connect(self, session_id: int = 1) -> None:
        self.become(SessionState.CONNECTING)
        self.become(SessionState.CONNECTED, session_id)

    def take(self) -> list[Operation]:
        self.asked = [each for each in self.outbox.take() if isinstance(each, ZkRequest)]
        return [each.operation for each in self.asked]

    def answer(self, *results: Result) -> None:
        for request, result in zip(self.asked, results, strict=True):
            event = ZkResult(token=request.token, result=result)
            self.outbox.deliver(request.token, event, 0)

    def record(self, name: str, *operations: Operation) -> None:
        def start() -> Procedure[None]:
            self.log.append(f"{name} begins")
            found = yield from one_by_one(operations)
            self.log.append((name, found))

        self.procedures.submit(name, start)


def test_procedures_run_one_after_another_and_wait_for_a_session() -> None:
    stand = Stand(resumes=False)
    stand.record("first", A, B)
    stand.record("second", A)
    assert stand.take() == []
    stand.connect()
    assert stand.take() == [A]
    stand.answer(Checked())
    assert stand.take() == [B]
    stand.answer(Checked())
    assert stand.log == ["first begins", ("first", [Checked(), Checked()]), "second begins"]


def test_pipelined_calls_are_in_flight_together_and_come_back_in_order() -> None:
    stand = Stand(resumes=False)
    stand.connect()

    def start() -> Procedure[None]:
        stand.log.append((yield from all_at_once([A, B])))
        stand.log.append((yield from all_at_once([])))

    stand.procedures.submit("both", start)
    assert stand.take() == [A, B]
    stand.answer(Checked(), Failed(error=Error.NO_NODE))
    assert stand.log == [[Checked(), Failed(error=Error.NO_NODE)], []]
    assert len(stand.procedures) == 0


def test_what_waits_already_is_not_queued_twice() -> None:
    stand = Stand(resumes=False)
    stand.connect()
    for _ in range(3):
        stand.record("running", A)
    assert len(stand.procedures) == 2, "one runs, one waits: it will see what is new"


def test_after_a_disconnection_a_procedure_begins_anew_in_the_same_session() -> None:
    stand = Stand(resumes=False)
    stand.connect()
    stand.record("p", A, B)
    stand.take()
    stand.answer(Checked())
    stand.take()
    stand.become(SessionState.CONNECTING)
    stand.answer(LOST)
    assert stand.take() == []
    stand.become(SessionState.CONNECTED, 1)
    assert stand.take() == [A], "from its beginning: what it had read may have changed"


def test_expiry_drops_what_runs_and_what_waits() -> None:
    stand = Stand(resumes=False)
    stand.connect()
    stand.record("p", A)
    stand.record("q", A)
    stand.take()
    stand.become(SessionState.CONNECTING)
    stand.answer(LOST)
    stand.become(SessionState.CLOSED)
    assert len(stand.procedures) == 0
    stand.connect(2)
    assert stand.take() == []


def test_resumed_procedure_goes_on_in_the_next_session_with_what_it_knew() -> None:
    stand = Stand(resumes=True)
    stand.connect()
    stand.record("p", A, B)
    stand.take()
    stand.answer(Checked())
    stand.take()
    stand.become(SessionState.CONNECTING)
    stand.answer(LOST)
    stand.become(SessionState.CLOSED)
    stand.connect(2)
    assert stand.take() == [B], "A was done in the old session"
    assert stand.asked[0].session_id == 2
    stand.answer(Checked())
    assert stand.log[-1] == ("p", [Checked(), Checked()])


def test_cleared_procedure_hears_nothing_more() -> None:
    stand = Stand(resumes=True)
    stand.connect()
    stand.record("p", A)
    stand.take()
    stand.procedures.clear()
    stand.answer(Checked())
    assert stand.log == ["p begins"]


def test_procedure_must_wait_for_something() -> None:
    stand = Stand(resumes=False)
    stand.connect()

    def start() -> Procedure[None]:
        yield ()

    with pytest.raises(AssertionError, match="waits for nothing"):
        stand.procedures.submit("idle", start)


def test_one_gives_the_result_itself() -> None:
    stand = Stand(resumes=False)
    stand.connect()

    def start() -> Procedure[None]:
        stand.log.append((yield from one(A)))

    stand.procedures.submit("one", start)
    stand.take()
    stand.answer(Checked())
    assert stand.log == [Checked()]
