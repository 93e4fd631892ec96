"""Partitions and replicas of `zk-redesign` in their states, and the changes of leader and ISR.

Seed 001 has the states, and which may follow which, in two tables. A transition that is not in its
table is a mistake of ours, and stops the process. Every change of a partition goes through here: it
is written, kept, and sent to its replicas and, as metadata, to all brokers.

Source: seed 001, PartitionStateMachine, ReplicaStateMachine, ControllerBrokerRequestBatch.
"""

from collections.abc import Hashable, Iterable, Mapping
from enum import Enum
from typing import Generic, TypeVar

from controller.metadata.election import Election
from controller.metadata.partitions import NO_LEADER, PartitionState
from controller.zk import partition_states
from controller.zk.commands import Batch
from controller.zk.controller_context import Context
from controller.zk.partition_states import Decide
from quorum.zookeeper.zk_procedures import Procedure
from wire.zk.control_rpc import TopicPartition

__all__ = [
    "PARTITION_TRANSITIONS",
    "REPLICA_TRANSITIONS",
    "PartitionStage",
    "Replica",
    "ReplicaStage",
    "StateMachine",
    "StateMachines",
]


class PartitionStage(Enum):
    NON_EXISTENT = "NonExistentPartition"  # never was, or was deleted
    NEW = "NewPartition"  # has replicas, but no leader and ISR yet
    ONLINE = "OnlinePartition"  # has a leader
    OFFLINE = "OfflinePartition"  # its leader has died


class ReplicaStage(Enum):
    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"  # its broker is down, or has refused


_P, _R = PartitionStage, ReplicaStage

PARTITION_TRANSITIONS: Mapping[PartitionStage, tuple[PartitionStage, ...]] = {
    _P.NON_EXISTENT: (_P.NEW,),
    _P.NEW: (_P.ONLINE, _P.OFFLINE),
    _P.ONLINE: (_P.ONLINE, _P.OFFLINE),
    _P.OFFLINE: (_P.ONLINE, _P.OFFLINE, _P.NON_EXISTENT),
}
REPLICA_TRANSITIONS: Mapping[ReplicaStage, tuple[ReplicaStage, ...]] = {
    _R.NON_EXISTENT: (_R.NEW,),
    _R.NEW: (_R.ONLINE, _R.OFFLINE),
    _R.ONLINE: (_R.ONLINE, _R.OFFLINE),
    _R.OFFLINE: (_R.ONLINE, _R.OFFLINE, _R.DELETION_STARTED),
    _R.DELETION_STARTED: (_R.DELETION_SUCCESSFUL, _R.DELETION_INELIGIBLE),
    _R.DELETION_SUCCESSFUL: (_R.NON_EXISTENT,),
    _R.DELETION_INELIGIBLE: (_R.ONLINE, _R.OFFLINE),
}

_ALIVE = (_R.NEW, _R.ONLINE, _R.OFFLINE)  # not being deleted
_Key = TypeVar("_Key", bound=Hashable)
_State = TypeVar("_State", bound=Enum)


class StateMachine(Generic[_Key, _State]):
    """The state of each item of one kind; an item that is not listed does not exist."""

    def __init__(self, nothing: _State, transitions: Mapping[_State, tuple[_State, ...]]) -> None:
        self._nothing = nothing
        self._transitions = transitions
        self._stages: dict[_Key, _State] = {}

    def of(self, key: _Key) -> _State:
        return self._stages.get(key, self._nothing)

    def begin(self, key: _Key, stage: _State) -> None:
        """Set the state in which a new controller finds it."""
        self._stages[key] = stage

    def become(self, key: _Key, *stages: _State) -> None:
        """Go through `stages`, each of which must be allowed after the one before it."""
        for stage in stages:
            before = self.of(key)
            assert stage in self._transitions[before], (key, before, stage)
            if stage is self._nothing:
                self._stages.pop(key, None)
            else:
                self._stages[key] = stage

    def among(self, keys: Iterable[_Key], *stages: _State) -> list[_Key]:
        """The keys that are in one of `stages`."""
        return [key for key in keys if self.of(key) in stages]


Replica = tuple[TopicPartition, int]  # the partition, and the broker


class StateMachines:
    def __init__(self, context: Context) -> None:
        self._context = context
        self.partitions: StateMachine[TopicPartition, PartitionStage] = StateMachine(
            PartitionStage.NON_EXISTENT, PARTITION_TRANSITIONS
        )
        self.replicas: StateMachine[Replica, ReplicaStage] = StateMachine(
            ReplicaStage.NON_EXISTENT, REPLICA_TRANSITIONS
        )
        self.leaving: dict[Replica, None] = {}  # no longer assigned, and not deleted yet

    def begin(self) -> None:
        """Set the states in which a new controller finds everything."""
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
                self.replicas.begin((of, broker_id), self._present(broker_id))

    def _present(self, broker_id: int) -> ReplicaStage:
        return ReplicaStage.ONLINE if broker_id in self._context.live else ReplicaStage.OFFLINE

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
        for replica in self.replicas.among(self.replicas_on(gone), *_ALIVE):
            self.replicas.become(replica, ReplicaStage.OFFLINE)

    def brokers_up(self, new: Iterable[int]) -> None:
        for replica in self.replicas.among(self.replicas_on(new), *_ALIVE):
            if not self._context.is_deleting(replica[0]):
                self.replicas.become(replica, ReplicaStage.ONLINE)

    # --- replicas that come and go --------------------------------------------------------------

    def add(self, replica: Replica) -> None:
        """Its partition will have this replica, or will have it again."""
        self.leaving.pop(replica, None)
        if self.replicas.of(replica) is ReplicaStage.NON_EXISTENT:
            self.replicas.become(replica, ReplicaStage.NEW)
        elif self.replicas.of(replica) is ReplicaStage.DELETION_INELIGIBLE:
            self.replicas.become(replica, self._present(replica[1]))

    def leave(self, replica: Replica) -> bool:
        """Its partition has this replica no more. False: that is known."""
        is_new = bool(self.replicas.among([replica], *_ALIVE))
        if is_new:
            self.replicas.become(replica, ReplicaStage.OFFLINE)
            self.leaving[replica] = None
        return is_new

    def has_left(self, replica: Replica) -> None:
        """It is deleted; one that is still assigned is forgotten with its topic."""
        if replica in self.leaving:
            del self.leaving[replica]
            self.replicas.become(replica, ReplicaStage.NON_EXISTENT)

    # --- partitions ---------------------------------------------------------------------------

    def create(self, partitions: list[TopicPartition]) -> Procedure[None]:
        """Give new partitions a leader and an ISR, and tell their brokers."""
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
            return partition_states.initial(context.replicas(of), context.live)

        new = self.partitions.among(partitions, PartitionStage.NEW)
        written = yield from self.change(new, decide)
        for of in written:
            for broker_id in context.replicas(of):
                self.replicas.become((of, broker_id), self._present(broker_id))

    def elect_offline(self) -> Procedure[None]:
        """Elect for partitions without a leader, except those that are being deleted."""
        every = [of for of in self._context.partitions() if not self._context.is_deleting(of)]
        yield from self._initialise(every)
        yield from self.elect(self.partitions.among(every, PartitionStage.OFFLINE))

    def elect(
        self,
        partitions: Iterable[TopicPartition],
        *,
        without: Iterable[int] = (),
        is_orderly: bool = False,
    ) -> Procedure[None]:
        """Elect leaders and ISRs as the live brokers allow, `without` some of them.

        A broker in an orderly shutdown keeps the partitions that nobody else can lead.
        """
        context = self._context
        live = context.live.keys() - set(without)
        unclean = context.is_unclean_allowed and not is_orderly
        how = Election.UNCLEAN if unclean else Election.ONLINE

        def decide(_of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
            after = None if state is None else partition_states.elected(state, live, how)
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
        """Send the states to the replicas and, as metadata, to all brokers."""
        context = self._context
        states = {of: context.states[of] for of in partitions if of in context.states}
        batch = Batch(metadata=states, updated=set(context.live) if states else set())
        for of, state in states.items():
            batch.tell(state.replicas, of, state)
        context.tell(batch)

    def forget(self, topic: str) -> None:
        """The topic is gone: forget its partitions."""
        context = self._context
        for of in list(context.partitions([topic])):
            context.states.pop(of, None)
            leaving = [each for each in self.leaving if each[0] == of]
            for replica in (*leaving, *((of, each) for each in context.replicas(of))):
                self.leaving.pop(replica, None)
                self.replicas.begin(replica, ReplicaStage.DELETION_SUCCESSFUL)
                self.replicas.become(replica, ReplicaStage.NON_EXISTENT)
            self.partitions.begin(of, PartitionStage.OFFLINE)
            self.partitions.become(of, PartitionStage.NON_EXISTENT)
        context.assignments.pop(topic, None)
