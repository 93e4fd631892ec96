"""Deleting topics: what a replica's refusal leads to."""

import pytest

from controller.metadata.partitions import PartitionState
from controller.zk.commands import Commands
from controller.zk.commands import Request as Command
from controller.zk.controller_context import Context
from controller.zk.controller_election import Controllership
from controller.zk.deletion import Deletions
from controller.zk.partition_states import StateStore
from controller.zk.procedure_milestones import ProcedureMilestones
from controller.zk.replica_deletions import ReplicaDeletions
from controller.zk.state_machines import StateMachines
from controller.zk.zk_controller_config import ZkControllerConfig
from quorum.core.effects import Response, Send
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_effects import ZkRequest, ZkResult
from quorum.zookeeper.zk_procedures import Procedures
from wire.errors import ErrorCode
from wire.zk import paths
from wire.zk.control_rpc import (
    ListenerAddress,
    LiveBroker,
    PartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicPartition,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from wire.zk.designs import ZK_REDESIGN
from wire.zk.session import (
    Children,
    Deleted,
    GetChildren,
    Session,
    SessionChanged,
    SessionState,
    Stat,
)

T = TopicPartition("t", 0)
BROKER = LiveBroker(
    id=2, listeners=(ListenerAddress(listener="PLAINTEXT", host="b", port=1),), generation=5
)
STAT = Stat(
    czxid=1,
    mzxid=1,
    pzxid=1,
    version=0,
    children_version=0,
    children_count=1,
    ephemeral_owner=0,
)


class Stand:
    """A topic of one partition on broker 2, which answers as it is told to."""

    def __init__(self) -> None:
        self.outbox, session = Outbox("controller"), Session()
        for state in (SessionState.CONNECTING, SessionState.CONNECTED):
            session.become(SessionChanged(state=state, session_id=1, timeout_ms=1), 0)
        milestones, controllership = (
            ProcedureMilestones(self.outbox),
            Controllership(epoch=1, epoch_zk_version=0),
        )
        self.commands = Commands(
            ZkControllerConfig(node_id=1, design=ZK_REDESIGN, retry_backoff_ms=1),
            self.outbox,
            session,
            milestones,
            self.obeyed,
        )
        self.context = Context(
            config=ZkControllerConfig(node_id=1, design=ZK_REDESIGN, delete_retry_ms=5000),
            outbox=self.outbox,
            procedures=Procedures(self.outbox, session),
            commands=self.commands,
            controllership=controllership,
            store=StateStore(ZK_REDESIGN, controllership, milestones),
            milestones=milestones,
            live={2: BROKER},
            assignments={"t": {0: (2,)}},
            states={T: PartitionState(replicas=(2,), isr=(2,), leader=2)},
        )
        self.commands.brokers_are(self.context.live)
        stage = StateMachines(self.context)
        stage.begin()
        self.replicas = ReplicaDeletions(self.context, stage)
        self.deletions = Deletions(self.context, stage, self.replicas)
        self.refuses: bool | None = None  # to delete, or to stop serving
        self.deleted: list[str] = []
        self.told = {False: 0, True: 0}  # how often to stop serving, and to delete

    def obeyed(self, broker_id: int, command: Command, answer: object) -> None:
        if isinstance(command, StopReplicaRequest):
            if command.delete_partitions:
                self.replicas.answered(broker_id, command, answer)
            self.deletions.obeyed(broker_id, command, answer)

    def settle(self) -> None:
        for _ in range(100):  # it ends
            asked = [e for e in self.outbox.take() if isinstance(e, Send | ZkRequest)]
            if not asked:
                return
            for each in asked:
                answer = self.answer_of(each)
                self.outbox.deliver(each.token, answer, self.context.now_ms)
        raise AssertionError("it goes on and on")

    def answer_of(self, asked: Send | ZkRequest) -> Response | ZkResult:
        if isinstance(asked, ZkRequest):
            if isinstance(asked.operation, GetChildren):
                return ZkResult(token=asked.token, result=Children(names=("t",), stat=STAT))
            self.deleted.append(asked.operation.path)  # type: ignore[union-attr]
            return ZkResult(token=asked.token, result=Deleted())
        if isinstance(asked.body, UpdateMetadataRequest):
            return Response(token=asked.token, body=UpdateMetadataResponse())
        assert isinstance(asked.body, StopReplicaRequest), asked.body
        deletes = asked.body.delete_partitions
        self.told[deletes] += 1
        refused = ErrorCode.KAFKA_STORAGE_ERROR if deletes is self.refuses else ErrorCode.NONE
        results = PartitionError(topic="t", partition=0, error_code=refused)
        body = StopReplicaResponse(results=(results,))
        return Response(token=asked.token, body=body)

    def run(self, now_ms: int) -> None:
        self.context.now_ms = now_ms
        self.deletions.retry.tick(now_ms)
        self.settle()


@pytest.mark.parametrize("deletes", [False, True], ids=["to stop", "to delete"])
def test_replica_that_has_refused_is_asked_again_by_a_repeated_task(deletes: bool) -> None:
    """In either phase, the second of which comes after the first."""
    stand = Stand()
    stand.refuses = deletes
    stand.context.procedures.submit("asked", stand.deletions.asked)
    stand.settle()
    assert (stand.told[deletes], stand.deleted) == (1, [])
    stand.run(0)
    stand.run(4999)
    assert stand.told == {False: 1, True: int(deletes)}
    stand.run(5000)
    assert stand.told[deletes] == 2, "it refuses again"
    stand.refuses = None
    stand.run(10_000)
    assert stand.told[deletes] == 3
    assert stand.told[not deletes] == 1
    assert stand.deleted[-1] == f"{paths.DELETE_TOPICS}/t"


def test_answer_of_the_last_replica_ends_the_deletion_at_once() -> None:
    """The callback becomes an event."""
    stand = Stand()
    stand.context.procedures.submit("asked", stand.deletions.asked)
    stand.settle()
    assert stand.deleted[-1] == f"{paths.DELETE_TOPICS}/t"
    assert stand.context.assignments == {}
