"""What people ask for is read apart: nobody waits for it, and everybody who asked is answered."""

import pytest

from broker.cluster import Cluster
from broker.config import BrokerConfig
from broker.zk.view import Reading, View
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_effects import ZkRequest, ZkResult
from quorum.zookeeper.zk_procedures import Procedures
from tests.broker.zk.trees import ZooKeeper
from wire.zk import paths
from wire.zk.designs import DESIGNS
from wire.zk.session import (
    Create,
    Error,
    Failed,
    Session,
    SessionChanged,
    SessionState,
)
from wire.zk.znodes import TopicAssignment

_PARTITIONS = 500
LOST = Failed(error=Error.CONNECTION_LOSS)


class Stand:
    def __init__(self, design: str = "zk-v3") -> None:
        self.zookeeper = ZooKeeper()
        assigned = TopicAssignment(partitions=dict.fromkeys(range(_PARTITIONS), (1,))).encode()
        self.zookeeper.do(Create(path=paths.topic("t"), data=assigned))
        self.outbox, self.session = Outbox("broker"), Session()
        self.procedures = Procedures(self.outbox, self.session, resumes=True)
        self.view = View(
            design=DESIGNS[design],
            cluster=Cluster(BrokerConfig(node_id=1, cluster_id="c", listeners=(), log_dirs=())),
            procedures=self.procedures,
            apart=Procedures(self.outbox, self.session),
        )
        self.told: list[Reading | None] = []
        self.connect(1)

    def connect(self, session_id: int) -> None:
        self.become(SessionState.CONNECTING)
        self.become(SessionState.CONNECTED, session_id)

    def become(self, state: SessionState, session_id: int = 0) -> None:
        self.session.become(SessionChanged(state=state, session_id=session_id, timeout_ms=1), 0)
        self.procedures.session_changed()
        self.view.session_changed(is_over=state is SessionState.CLOSED)

    def ask(self, *topics: str) -> None:
        self.view.read_apart(self.told.append, topics or None)

    def answer_once(self, *, is_lost: bool = False) -> int:
        """How much was asked by now."""
        asked = [each for each in self.outbox.take() if isinstance(each, ZkRequest)]
        for each in asked:
            result = LOST if is_lost else self.zookeeper.do(each.operation)
            self.outbox.deliver(each.token, ZkResult(token=each.token, result=result), 0)
        return len(asked)

    @property
    def partitions(self) -> list[int]:
        while self.answer_once():
            pass
        return [-1 if read is None else len(read.image.partitions) for read in self.told]


@pytest.mark.parametrize("answered_before", range(4))
def test_who_asked_is_told_when_the_connection_is_back(answered_before: int) -> None:
    stand = Stand()
    stand.ask()
    for _ in range(answered_before):
        stand.answer_once()
    stand.become(SessionState.CONNECTING)
    stand.answer_once(is_lost=True)
    stand.ask("t")
    assert stand.partitions == []
    stand.become(SessionState.CONNECTED, 1)
    assert stand.partitions == [_PARTITIONS, _PARTITIONS]


def test_who_asked_is_told_at_once_that_the_session_is_over() -> None:
    stand = Stand()
    stand.ask()
    stand.answer_once()
    stand.become(SessionState.CLOSED)
    assert stand.told == [None]


@pytest.mark.parametrize("design", DESIGNS)
def test_clients_do_not_wait_for_what_is_read_apart(design: str) -> None:
    stand = Stand(design)
    stand.ask()
    stand.view.refresh(lambda: None)
    assert len(stand.outbox.take()) == 2, "both are under way"
    stand = Stand(design)
    stand.ask()
    rounds = 0
    while asked := stand.answer_once():
        rounds += 1
        assert asked <= 300, "what others ask meanwhile waits for so many answers"
    assert rounds < 10, "one after the other, thousands of partitions take longer than people wait"
    assert stand.partitions == [_PARTITIONS]
