"""News of ISR changes: when they are told, and that they outlive the session."""

from broker.zk.isr_notifications import IsrNotifications
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_effects import ZkRequest, ZkResult
from quorum.zookeeper.zk_procedures import Procedures
from wire.zk.control_rpc import TopicPartition
from wire.zk.session import Create, Created, Session, SessionChanged, SessionState
from wire.zk.znodes import PartitionList

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Stand:
    def __init__(self) -> None:
        self.outbox, self.session = Outbox("broker"), Session()
        self.procedures = Procedures(self.outbox, self.session)
        self.news = IsrNotifications(self.procedures)
        self.connect(1)

    def connect(self, session_id: int) -> None:
        self.become(SessionState.CONNECTING)
        self.become(SessionState.CONNECTED, session_id)

    def become(self, state: SessionState, session_id: int = 0) -> None:
        self.session.become(SessionChanged(state=state, session_id=session_id, timeout_ms=1), 0)
        self.procedures.session_changed()

    def told_at(self, now_ms: int) -> list[tuple[str, int]]:
        """What a look at that time tells, with its answer."""
        self.news.tick(now_ms)
        found: list[tuple[str, int]] = []
        for each in self.outbox.take():
            assert isinstance(each, ZkRequest), each
            assert isinstance(each.operation, Create), each
            found += PartitionList.decode(each.operation.data).partitions
            self.last = each
        return found

    def answer(self) -> None:
        result = ZkResult(token=self.last.token, result=Created(path="/x"))
        self.outbox.deliver(self.last.token, result, 0)


def test_news_are_told_when_nothing_has_changed_for_five_seconds() -> None:
    stand = Stand()
    stand.news.changed(P0, 0)
    assert stand.told_at(2500) == []
    stand.news.changed(P1, 3000)
    assert [stand.told_at(each) for each in (5000, 7500)] == [[], []]
    assert stand.told_at(10_000) == [("t", 0), ("t", 1)]


def test_news_are_told_after_a_minute_whatever_else_changes() -> None:
    stand = Stand()
    told_ms = []
    for now_ms in range(0, 70_000, 2500):
        if stand.told_at(now_ms):
            told_ms.append(now_ms)
            stand.answer()
        stand.news.changed(P0, now_ms)
    assert told_ms == [60_000]


def test_news_that_the_end_of_a_session_has_stopped_are_told_in_the_next() -> None:
    stand = Stand()
    stand.news.changed(P0, 0)
    assert [stand.told_at(each) for each in (2500, 5000)] == [[], [("t", 0)]]
    stand.become(SessionState.CLOSED)
    stand.connect(2)
    assert stand.told_at(7500) == [("t", 0)]
    stand.answer()
    assert stand.news.deadline_ms() is None


def test_news_that_come_while_others_are_on_their_way_are_told_later() -> None:
    """Of a partition that is being told, too: the controller may have read it already."""
    stand = Stand()
    stand.news.changed(P0, 0)
    assert [stand.told_at(each) for each in (2500, 5000)] == [[], [("t", 0)]]
    stand.news.changed(P1, 5001)
    stand.answer()
    assert [stand.told_at(each) for each in (7500, 10_000, 12_500)] == [[], [], [("t", 1)]]
    stand.news.changed(P1, 12_501)
    stand.answer()
    assert stand.news.deadline_ms() == 15_000
    assert [stand.told_at(each) for each in (15_000, 17_500, 20_000)] == [[], [], [("t", 1)]]
    stand.answer()
    assert stand.news.deadline_ms() is None
