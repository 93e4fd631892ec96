"""Commands on their way to brokers, while the controller's session comes and goes."""

from dataclasses import replace

import pytest

from controller.zk.commands import Commands
from controller.zk.procedure_milestones import ProcedureMilestones
from controller.zk.zk_controller_config import ZkControllerConfig
from quorum.core.effects import Response, Send
from quorum.core.outbox import Outbox
from wire.zk.control_rpc import (
    ListenerAddress,
    LiveBroker,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from wire.zk.designs import ZK_REDESIGN
from wire.zk.session import Session, SessionChanged, SessionState

BROKER = LiveBroker(
    id=2, listeners=(ListenerAddress(listener="PLAINTEXT", host="b", port=1),), generation=5
)
COMMAND = UpdateMetadataRequest(client_id=1, ack_timeout_ms=1000)


class Stand:
    def __init__(self, *, at_once: bool) -> None:
        self.outbox, self.session = Outbox("controller"), Session()
        self.become(SessionState.CONNECTING)
        self.become(SessionState.CONNECTED)
        self.commands = Commands(
            ZkControllerConfig(
                node_id=1,
                design=replace(ZK_REDESIGN, hears_session_at_once=at_once),
                retry_backoff_ms=1,
            ),
            self.outbox,
            self.session,
            ProcedureMilestones(self.outbox),
            lambda _broker, _command, _answer: None,
        )
        self.commands.brokers_are({2: BROKER})

    def become(self, state: SessionState) -> None:
        self.session.become(SessionChanged(state=state, session_id=7, timeout_ms=1), 0)

    def sent(self) -> list[Send]:
        return [each for each in self.outbox.take() if isinstance(each, Send)]


@pytest.mark.parametrize("at_once", [True, False])
def test_command_waits_while_the_session_is_cut_off_where_that_is_heard(at_once: bool) -> None:
    """Also the next one of a queue, when the one before it is answered."""
    stand = Stand(at_once=at_once)
    stand.commands.send(2, COMMAND, 0)
    stand.commands.send(2, COMMAND, 0)
    (first,) = stand.sent()
    stand.become(SessionState.CONNECTING)
    answer = Response(token=first.token, body=UpdateMetadataResponse())
    stand.outbox.deliver(first.token, answer, 0)
    assert (stand.sent() == []) is at_once
    stand.become(SessionState.CONNECTED)
    stand.commands.tick(1)
    assert len(stand.sent()) == at_once


def test_delivery_is_told_when_all_that_waited_is_answered_or_the_broker_is_gone() -> None:
    stand = Stand(at_once=True)
    told: list[str] = []
    stand.commands.send(2, COMMAND, 0)
    stand.commands.when_delivered([2, 3], lambda: told.append("first"))
    stand.commands.send(2, COMMAND, 0)
    stand.commands.when_delivered([2], lambda: told.append("second"))
    assert told == []
    (sent,) = stand.sent()
    answer = Response(token=sent.token, body=UpdateMetadataResponse())
    stand.outbox.deliver(sent.token, answer, 0)
    assert told == ["first"]
    stand.commands.brokers_are({})
    assert told == ["first", "second"]
    stand.commands.when_delivered([2], lambda: told.append("third"))
    assert told[2:] == ["third"], "nothing waits"
