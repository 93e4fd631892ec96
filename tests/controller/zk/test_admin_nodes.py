"""Nodes that several administrators write, and controllers take away: no wish is lost between."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from controller.metadata.partitions import PartitionState
from controller.zk.admin_nodes import AdminNodes, grown
from controller.zk.commands import Commands
from controller.zk.controller_context import Context
from controller.zk.controller_election import Controllership
from controller.zk.deletion import Deletions
from controller.zk.partition_states import StateStore
from controller.zk.procedure_milestones import ProcedureMilestones
from controller.zk.redesign import PreferredLeaders
from controller.zk.replica_deletions import ReplicaDeletions
from controller.zk.state_machines import StateMachines
from controller.zk.zk_controller_config import ZkControllerConfig
from controller.zk.zk_metadata import write_over
from controller.zk.zk_reassignment import Reassigner
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_procedures import Procedure, Procedures
from tests.broker.zk.trees import ZooKeeper
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import ZK_REDESIGN
from wire.zk.session import (
    Create,
    Data,
    Delete,
    Exists,
    GetData,
    Operation,
    Result,
    Session,
    SetData,
)
from wire.zk.znodes import PartitionList, Reassignments, TopicAssignment

T = TopicPartition("t", 0)
MOVED = {("t", 0): (1,)}
ANOTHER = {("u", 0): (2, 1)}


@dataclass(slots=True)
class Meanwhile:
    """Somebody else writes, just before the first `kind` is carried out at `path`."""

    zookeeper: ZooKeeper
    path: str
    kind: type
    write: Operation | None

    def run(self, procedure: Procedure[object]) -> None:
        results: tuple[Result, ...] | None = None
        while True:
            try:
                asked = next(procedure) if results is None else procedure.send(results)
            except StopIteration:
                return
            results = tuple(self._do(operation) for operation in asked)

    def _do(self, operation: Operation) -> Result:
        is_it = isinstance(operation, self.kind) and getattr(operation, "path", "") == self.path
        if is_it and self.write is not None:
            write, self.write = self.write, None
            self.zookeeper.do(write)
        return self.zookeeper.do(operation)


@pytest.fixture
def zookeeper() -> ZooKeeper:
    known = ZooKeeper()
    known.do(Create(path="/admin"))
    known.do(Create(path=paths.DELETE_TOPICS))
    data = TopicAssignment(partitions={0: (1,)}).encode()
    known.do(Create(path=paths.topic("t"), data=data))
    return known


def data_of(zookeeper: ZooKeeper, path: str) -> bytes | None:
    found = zookeeper.do(GetData(path=path))
    return found.data if isinstance(found, Data) else None


def context() -> Context:
    outbox, controllership = Outbox("controller"), Controllership(epoch=1, epoch_zk_version=0)
    milestones = ProcedureMilestones(outbox)
    return Context(
        config=ZkControllerConfig(node_id=1, design=ZK_REDESIGN),
        outbox=outbox,
        procedures=Procedures(outbox, Session()),
        commands=Commands(
            ZkControllerConfig(node_id=1, design=ZK_REDESIGN, retry_backoff_ms=1),
            outbox,
            Session(),
            milestones,
            lambda _broker, _command, _answer: None,
        ),
        controllership=controllership,
        store=StateStore(ZK_REDESIGN, controllership, milestones),
        milestones=milestones,
        assignments={"t": {0: (1,)}},
        states={T: PartitionState(replicas=(1,), isr=(1,), leader=1)},
    )


Asked = Callable[[Context], Procedure[None]]
PREFERRED, MOVES = paths.PREFERRED_REPLICA_ELECTION, paths.REASSIGN_PARTITIONS


def reassigner(known: Context) -> Reassigner:
    machines = StateMachines(known)
    return Reassigner(known, machines, ReplicaDeletions(known, machines))


@pytest.mark.parametrize(
    ("asked", "path", "before", "since"),
    [
        pytest.param(
            lambda known: PreferredLeaders(known, StateMachines(known)).asked(),
            PREFERRED,
            PartitionList(partitions=(("t", 0),)).encode(),
            PartitionList(partitions=(("u", 0),)).encode(),
            id="preferred",
        ),
        pytest.param(
            lambda known: reassigner(known).asked(),
            MOVES,
            Reassignments(replicas=MOVED).encode(),
            Reassignments(replicas=ANOTHER).encode(),
            id="moved",
        ),
    ],
)
def test_controller_takes_away_what_it_has_read_and_nothing_newer(
    zookeeper: ZooKeeper, asked: Asked, path: str, before: bytes, since: bytes
) -> None:
    zookeeper.do(Create(path=path, data=before))
    write = SetData(path=path, data=since)
    Meanwhile(zookeeper, path, Delete, write).run(asked(context()))
    assert data_of(zookeeper, path) == since
    Meanwhile(zookeeper, path, Delete, None).run(asked(context()))
    assert data_of(zookeeper, path) is None


def test_wish_of_a_client_is_added_to_what_another_has_just_written(zookeeper: ZooKeeper) -> None:
    another = Create(path=MOVES, data=Reassignments(replicas=ANOTHER).encode())
    wanted = AdminNodes(ZK_REDESIGN.layout).reassign({T: (1, 2)})
    Meanwhile(zookeeper, MOVES, Create, another).run(wanted)
    data = data_of(zookeeper, MOVES)
    assert data is not None
    assert Reassignments.decode(data).replicas == {**ANOTHER, ("t", 0): (1, 2)}


def test_topic_grows_beside_what_is_moving(zookeeper: ZooKeeper) -> None:
    moving = TopicAssignment(
        partitions={0: (1, 2)}, version=2, adding={0: (2,)}, removing={0: (1,)}
    )
    path = paths.topic("t")
    write = SetData(path=path, data=moving.encode())
    Meanwhile(zookeeper, path, SetData, write).run(grown("t", {1: (2,)}))
    data = data_of(zookeeper, path)
    assert data is not None
    assert TopicAssignment.decode(data) == TopicAssignment(
        partitions={0: (1, 2), 1: (2,)}, version=2, adding={0: (2,)}, removing={0: (1,)}
    )


def test_topic_that_is_gone_does_not_grow(zookeeper: ZooKeeper) -> None:
    assert zookeeper.run(grown("v", {1: (2,)})) is False
    assert data_of(zookeeper, paths.topic("v")) is None


def test_node_below_one_that_went_with_its_last_child_is_written(zookeeper: ZooKeeper) -> None:
    path = paths.partition_under("/admin", "t", 0)
    assert zookeeper.run(write_over(path, lambda _before: b"{}")) is True
    assert data_of(zookeeper, path) == b"{}"


def test_deletion_of_a_topic_that_the_controller_has_not_heard_of_yet_is_kept(
    zookeeper: ZooKeeper,
) -> None:
    known = context()
    machines = StateMachines(known)
    deletions = Deletions(known, machines, ReplicaDeletions(known, machines))
    for topic in ("u", "v"):
        zookeeper.do(Create(path=f"{paths.DELETE_TOPICS}/{topic}"))
    born = Create(path=paths.topic("u"), data=TopicAssignment(partitions={0: (1,)}).encode())
    Meanwhile(zookeeper, paths.topic("u"), Exists, born).run(deletions.asked())
    assert data_of(zookeeper, f"{paths.DELETE_TOPICS}/u") is not None
    assert data_of(zookeeper, f"{paths.DELETE_TOPICS}/v") is None, "there is none"
    assert deletions.awaited == {"u"}
