"""Which ISR changes a controller of KIP-497 makes, and why it refuses the others."""

import pytest

from controller.metadata.partitions import PartitionState
from controller.zk.alter_isr import IsrChanges, refusal
from controller.zk.commands import Commands
from controller.zk.controller_context import Context
from controller.zk.controller_election import Controllership
from controller.zk.partition_states import StateStore
from controller.zk.procedure_milestones import ProcedureMilestones
from controller.zk.state_machines import StateMachines
from controller.zk.zk_controller_config import ZkControllerConfig
from quorum.core.effects import Reply, Request, Send, Trace
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_effects import ZkRequest, ZkResult
from quorum.zookeeper.zk_procedures import Procedures
from wire.errors import ErrorCode
from wire.message import replace
from wire.zk.control_rpc import (
    NO_EPOCH,
    AlterIsrRequest,
    AlterIsrResponse,
    LiveBroker,
    TopicPartition,
    WantedIsr,
)
from wire.zk.designs import ZK_KIP497
from wire.zk.session import Error, Failed, GetData, Session, SessionChanged, SessionState

T = TopicPartition("t", 0)
ASKED = WantedIsr(leader=1, leader_epoch=4, isr=(1, 2), current_zk_version=9)


def context(session: Session | None = None) -> Context:
    """Broker 1 leads, alone in the ISR; broker 3 is down."""
    outbox, controllership = Outbox("controller"), Controllership(epoch=1, epoch_zk_version=0)
    milestones = ProcedureMilestones(outbox)
    state = PartitionState(
        replicas=(1, 2, 3), isr=(1,), leader=1, leader_epoch=4, partition_epoch=9
    )
    return Context(
        config=ZkControllerConfig(node_id=1, design=ZK_KIP497),
        outbox=outbox,
        procedures=Procedures(outbox, session or Session()),
        commands=Commands(
            ZkControllerConfig(node_id=1, design=ZK_KIP497, retry_backoff_ms=1),
            outbox,
            Session(),
            milestones,
            lambda _broker, _command, _answer: None,
        ),
        controllership=controllership,
        store=StateStore(ZK_KIP497, controllership, milestones),
        milestones=milestones,
        live={each: LiveBroker(id=each, listeners=()) for each in (1, 2)},
        assignments={"t": {0: (1, 2, 3)}},
        states={TopicPartition("t", 0): state},
    )


@pytest.mark.parametrize(
    ("of", "asked", "asker", "error"),
    [
        (T, ASKED, 1, ErrorCode.NONE),
        (TopicPartition("u", 0), ASKED, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (T, replace(ASKED, leader_epoch=3), 1, ErrorCode.FENCED_LEADER_EPOCH),
        (T, ASKED, 2, ErrorCode.FENCED_LEADER_EPOCH),
        (T, replace(ASKED, leader=2), 1, ErrorCode.FENCED_LEADER_EPOCH),
        (T, replace(ASKED, current_zk_version=8), 1, ErrorCode.INVALID_UPDATE_VERSION),
        (T, replace(ASKED, isr=(1, 3)), 1, ErrorCode.INVALID_REQUEST),  # offline
        (T, replace(ASKED, isr=(1, 7)), 1, ErrorCode.INVALID_REQUEST),  # no replica
        (T, replace(ASKED, isr=(2,)), 1, ErrorCode.INVALID_REQUEST),  # without its leader
    ],
)
def test_change_is_refused_for_the_reason_that_the_document_names(
    of: TopicPartition, asked: WantedIsr, asker: int, error: ErrorCode
) -> None:
    known = context()
    assert refusal(known.states.get(of), asked, asker, known.live) is error


def test_replica_that_has_gone_since_it_was_asked_for_is_not_written() -> None:
    session = Session()
    known = context(session)
    changes = IsrChanges(known, StateMachines(known))
    body = AlterIsrRequest.of(1, NO_EPOCH, {T: ASKED})
    changes.asked(Request(token=1, body=body))
    (answered,) = (each.body for each in known.outbox.take() if isinstance(each, Reply))
    assert isinstance(answered, AlterIsrResponse)
    assert answered.errors == {T: ErrorCode.NONE}
    del known.live[2]
    for state in (SessionState.CONNECTING, SessionState.CONNECTED):
        session.become(SessionChanged(state=state, session_id=1, timeout_ms=1), 0)
    known.procedures.session_changed()
    asked = [each.operation for each in known.outbox.take() if isinstance(each, ZkRequest)]
    assert [type(each) for each in asked] == [GetData], "how things stand, to tell the leader"


def test_change_of_a_topic_that_is_deleted_since_is_neither_written_nor_told() -> None:
    """The command that follows would begin its replicas anew."""
    session = Session()
    known = context(session)
    changes = IsrChanges(known, StateMachines(known))
    body = AlterIsrRequest.of(1, NO_EPOCH, {T: ASKED})
    changes.asked(Request(token=1, body=body))
    known.deleting["t"] = None
    for state in (SessionState.CONNECTING, SessionState.CONNECTED):
        session.become(SessionChanged(state=state, session_id=1, timeout_ms=1), 0)
    known.procedures.session_changed()
    (read,) = (each for each in known.outbox.take() if isinstance(each, ZkRequest))
    assert isinstance(read.operation, GetData)
    gone = ZkResult(token=read.token, result=Failed(error=Error.NO_NODE))
    known.outbox.deliver(read.token, gone, 0)
    effects = known.outbox.take()
    assert not [each for each in effects if isinstance(each, Send | ZkRequest)]
    traced = [each.event for each in effects if isinstance(each, Trace)]
    assert "command-dropped" not in traced, "nor was there anything to send"


def test_leader_of_an_earlier_life_is_refused_as_a_whole() -> None:
    known = context()
    body = AlterIsrRequest.of(1, NO_EPOCH + 1, {T: ASKED})
    IsrChanges(known, StateMachines(known)).asked(Request(token=1, body=body))
    (answered,) = (each.body for each in known.outbox.take() if isinstance(each, Reply))
    assert answered == AlterIsrResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
