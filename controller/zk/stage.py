"""Partitions and replicas of `zk-redesign` in their stages, and the changes of leader and ISR.

Every change of a partition goes through here: written, kept, and told to its replicas and, as
metadata, to everybody.

Source: seed 001, PartitionStateMachine, ReplicaStateMachine, ControllerBrokerRequestBatch.
"""

from collections.abc import Callable, Iterable

from controller.metadata.election import Election
from controller.metadata.partitions import NO_LEADER, PartitionState
from controller.zk import electing
from controller.zk.controller_context import Context
from controller.zk.notify import Batch
from controller.zk.states import (
    PARTITION_TRANSITIONS,
    REPLICA_TRANSITIONS,
    PartitionStage,
    ReplicaStage,
    Stages,
)
from controller.zk.store import Decide
from quorum.zookeeper.zk_procedures import Procedure
from wire.zk.control_rpc import TopicPartition

__all__ = ["Replica", "Stage"]

Replica = tuple[TopicPartition, int]  # the partition, and the broker


class Stage:
    def __init__(self, context: Context) -> None:
        self._context = context
        self.partitions: Stages[TopicPartition, PartitionStage] = Stages(
            PartitionStage.NON_EXISTENT, PARTITION_TRANSITIONS
        )
        self.replicas: Stages[Replica, ReplicaStage] = Stages(
            ReplicaStage.NON_EXISTENT, REPLICA_TRANSITIONS
        )

    def begin(self) -> None:
        """As a new controller finds things."""
        context = self._context
        for of in context.partitions():
            state = context.states.get(of)
            if state is None:
                self.partitions.begin(of, PartitionStage.NEW)
            else:
                is_led = state.leader in context.live
                stage = PartitionStage.ONLINE if is_led else PartitionStage.OFFLINE
                self.partitions.begin(of, stage)
            for broker_id in context.replicas(of):
                is_up = broker_id in context.live
                self.replicas.begin(
                    (of, broker_id), ReplicaStage.ONLINE if is_up else ReplicaStage.OFFLINE
                )

    def replicas_on(self, broker_ids: Iterable[int]) -> list[Replica]:
        wanted = set(broker_ids)
        return [
            (of, broker_id)
            for of in self._context.partitions()
            for broker_id in self._context.replicas(of)
            if broker_id in wanted
        ]

    # --- brokers ------------------------------------------------------------------------------

    def brokers_down(self, dead: Iterable[int]) -> None:
        gone = set(dead)
        for of in self._context.partitions():
            state = self._context.states.get(of)
            if state is not None and state.leader in gone:
                self.partitions.become(of, PartitionStage.OFFLINE)
        alive = (ReplicaStage.NEW, ReplicaStage.ONLINE, ReplicaStage.OFFLINE)
        for replica in self.replicas.among(self.replicas_on(gone), *alive):
            self.replicas.become(replica, ReplicaStage.OFFLINE)

    def brokers_up(self, new: Iterable[int]) -> None:
        stages = (ReplicaStage.NEW, ReplicaStage.ONLINE, ReplicaStage.OFFLINE)
        for replica in self.replicas.among(self.replicas_on(new), *stages):
            self.replicas.become(replica, ReplicaStage.ONLINE)

    # --- partitions ---------------------------------------------------------------------------

    def create(self, partitions: list[TopicPartition]) -> Procedure[None]:
        """New ones, whatever made them: a leader and an ISR, and their brokers hear of them."""
        for of in self.partitions.among(partitions, PartitionStage.NON_EXISTENT):
            self.partitions.become(of, PartitionStage.NEW)
            for broker_id in self._context.replicas(of):
                self.replicas.become((of, broker_id), ReplicaStage.NEW)
        yield from self._initialise(partitions)

    def _initialise(self, partitions: list[TopicPartition]) -> Procedure[None]:
        context = self._context

        def decide(of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
            if state is not None:
                return None
            return electing.initial(context.replicas(of), context.live)

        new = self.partitions.among(partitions, PartitionStage.NEW)
        written = yield from self.change(new, decide)
        for of in written:
            for broker_id in context.replicas(of):
                is_up = broker_id in context.live
                self.replicas.become(
                    (of, broker_id), ReplicaStage.ONLINE if is_up else ReplicaStage.OFFLINE
                )

    def elect_offline(self, *, but: Callable[[TopicPartition], bool]) -> Procedure[None]:
        """Partitions that have no leader may get one by now; none of those that are deleted."""
        every = [of for of in self._context.partitions() if not but(of)]
        yield from self._initialise(every)
        yield from self.elect(self.partitions.among(every, PartitionStage.OFFLINE))

    def elect(
        self,
        partitions: Iterable[TopicPartition],
        *,
        without: Iterable[int] = (),
        is_orderly: bool = False,
    ) -> Procedure[None]:
        """Leaders and ISRs as the live brokers allow, `without` some of them.

        An orderly shutdown leaves with its broker what nobody else can lead.
        """
        context = self._context
        live = context.live.keys() - set(without)
        unclean = context.is_unclean_allowed and not is_orderly
        how = Election.UNCLEAN if unclean else Election.ONLINE

        def decide(_of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
            after = None if state is None else electing.elected(state, live, how)
            if is_orderly and after is not None and after.leader == NO_LEADER:
                return None
            return after

        yield from self.change(partitions, decide)

    def change(
        self, partitions: Iterable[TopicPartition], decide: Decide
    ) -> Procedure[dict[TopicPartition, PartitionState]]:
        """Write, keep and tell."""
        written = yield from self.write(partitions, decide)
        self.tell(written)
        return written

    def write(
        self, partitions: Iterable[TopicPartition], decide: Decide
    ) -> Procedure[dict[TopicPartition, PartitionState]]:
        """Write and keep."""
        context = self._context
        written = yield from context.store.change(
            partitions, context.assignments, decide, known=context.states
        )
        context.states |= written
        for of, state in written.items():
            is_led = state.leader != NO_LEADER
            self.partitions.become(of, PartitionStage.ONLINE if is_led else PartitionStage.OFFLINE)
        return written

    def tell(self, partitions: Iterable[TopicPartition]) -> None:
        """Their replicas, and everybody as metadata, how they stand."""
        context = self._context
        states = {of: context.states[of] for of in partitions if of in context.states}
        batch = Batch(metadata=states)
        for of, state in states.items():
            batch.tell(state.replicas, of, state)
        if states:
            batch.update(context.live)
        context.tell(batch)

    def forget(self, topic: str) -> None:
        """It is gone, and with it what is known of it."""
        context = self._context
        for of in list(context.partitions([topic])):
            context.states.pop(of, None)
            for broker_id in context.replicas(of):
                self.replicas.begin((of, broker_id), ReplicaStage.DELETION_SUCCESSFUL)
                self.replicas.become((of, broker_id), ReplicaStage.NON_EXISTENT)
            self.partitions.begin(of, PartitionStage.OFFLINE)
            self.partitions.become(of, PartitionStage.NON_EXISTENT)
        context.assignments.pop(topic, None)
