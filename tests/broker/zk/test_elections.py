"""The leader-change listener, step by step: what it makes of what it reads."""

from collections.abc import Callable

from broker.cluster import Cluster
from broker.config import BrokerConfig
from broker.zk.by_replicas.held import Held, ReplicaContext, ReplicaSettings
from broker.zk.by_replicas.leader_changes import LeaderChanges
from broker.zk.by_replicas.leader_elections import ElectionOutcome, Elections
from broker.zk.by_replicas.partition_nodes import FoundIsr
from broker.zk.view import View
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_effects import ZkRequest, ZkResult
from quorum.zookeeper.zk_procedures import Procedure, Procedures
from tests.broker.zk.test_partition_nodes import Partition, T
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import ZK_V2
from wire.zk.session import GetData, Operation, Session, SessionChanged, SessionState, SetData
from wire.zk.znodes import ReplicaList


class Roles:
    """What follows from elections, as it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def lead(self, held: Held, now_ms: int) -> None:
        self.asked.append(f"lead in epoch {held.leader_epoch}")

    def follow(self, held: Held, now_ms: int) -> None:
        self.asked.append(f"follow {held.leader}")

    def leads(self, of: TopicPartition) -> bool:
        return False


class Listener:
    """Broker 1's, in the session that all nodes of the tree are of."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.outbox, self.roles, session = Outbox("broker"), Roles(), Session()
        for state in (SessionState.CONNECTING, SessionState.CONNECTED):
            session.become(SessionChanged(state=state, session_id=1, timeout_ms=1), 0)
        procedures = Procedures(self.outbox, session)
        cluster = Cluster(BrokerConfig(node_id=1, cluster_id="c", listeners=(), log_dirs=()))
        context = ReplicaContext(
            design=ZK_V2,
            settings=ReplicaSettings(),
            node_id=1,
            session=session,
            outbox=self.outbox,
            procedures=procedures,
            view=View(
                design=ZK_V2,
                cluster=cluster,
                procedures=procedures,
                apart=procedures,
            ),
            held={T: Held(of=T)},
        )
        self.changes = LeaderChanges(context, procedures=procedures, run=self._run)
        self._elections = Elections(context, changes=self.changes, roles=self.roles)
        self.outcomes: list[ElectionOutcome] = []

    def _run(self) -> Procedure[None]:
        while (held := self.changes.next()) is not None:
            self.outcomes.append((yield from self._elections.on_leader_change(held)))

    def answer(self, before: Callable[[Operation], None] = lambda _asked: None) -> None:
        """All that is asked, one after another; `before` is told of each."""
        while asked := [each for each in self.outbox.take() if isinstance(each, ZkRequest)]:
            for each in asked:
                before(each.operation)
                result = self._partition.do(each.operation)
                self.outbox.deliver(each.token, ZkResult(token=each.token, result=result), 0)


def test_leader_leads_in_the_epoch_of_its_election() -> None:
    partition = Partition(ZK_V2)
    partition.elect(1, (1, 2), FoundIsr())
    listener = Listener(partition)
    listener.changes.look_soon(T, 0)
    listener.answer()
    assert listener.roles.asked == ["lead in epoch 0"]
    assert listener.outcomes == [ElectionOutcome.ELECTED]


def test_leader_that_another_has_followed_between_two_reads_does_not_lead() -> None:
    """Else it would have its successor's version of the ISR, and could write it."""
    partition = Partition(ZK_V2)
    partition.elect(1, (1, 2), FoundIsr())
    listener = Listener(partition)

    def elect_another(asked: Operation) -> None:
        at_isr = GetData(path=paths.partition_isr("t", 0))
        if asked == at_isr and partition.isr().leader_epoch == 0:
            partition.lose_leader()
            partition.elect(2, (1, 2), partition.run(partition.nodes.isr(T)))

    listener.changes.look_soon(T, 0)
    listener.answer(elect_another)
    assert listener.roles.asked == []
    listener.changes.tick(1000)
    listener.answer()
    assert listener.roles.asked == ["follow 2"]


def test_partition_that_is_not_assigned_to_us_any_more_is_not_ours() -> None:
    partition = Partition(ZK_V2)
    data = ReplicaList(replicas=(2, 3)).encode()
    partition.do(SetData(path=paths.partition_replicas("t", 0), data=data))
    listener = Listener(partition)
    listener.changes.look_soon(T, 0)
    listener.answer()
    assert (listener.outcomes, listener.roles.asked) == ([ElectionOutcome.NOT_ASSIGNED], [])


def test_replica_that_was_forgotten_is_not_looked_at() -> None:
    listener = Listener(Partition(ZK_V2))
    listener.changes.look_later(T, 10)
    listener.changes.forget(T)
    listener.changes.tick(1000)
    assert (listener.changes.next(), listener.changes.deadline_ms()) == (None, None)
