"""Deletion of topics: all replicas stop serving, then lose their logs, then the znodes are deleted.

No replica is told to delete its log before all have answered that they have stopped. A replica
whose broker is down, or that has refused, makes its topic wait, in either phase, until the broker
is back or a repeated task tries again (`delete_retry_ms`). A topic that is being reassigned waits,
too. A broker that comes back meanwhile deletes at once what it is not told to hold.

Source: seed 001, "topic deletion", TopicDeletionManager, "single-threaded event queue model".
"""

from dataclasses import replace

from controller.metadata.partitions import PartitionState
from controller.zk.commands import Batch
from controller.zk.controller_context import Context, Periodic
from controller.zk.replica_deletions import ReplicaDeletions, refusals
from controller.zk.state_machines import PartitionStage, Replica, ReplicaStage, StateMachines
from controller.zk.zk_metadata import calls, children, state_path
from quorum.zookeeper.zk_procedures import Procedure, one_by_one
from wire.zk import control_rpc as rpc
from wire.zk import paths
from wire.zk.session import Delete, Exists, Found

__all__ = ["Deletions"]

_ENDED = (ReplicaStage.DELETION_SUCCESSFUL, ReplicaStage.NON_EXISTENT)


class Deletions:
    def __init__(
        self, context: Context, machines: StateMachines, replicas: ReplicaDeletions
    ) -> None:
        self._context = context
        self._machines = machines
        self._deletions = replicas
        self._waiting: dict[str, None] = {}  # until their partitions have moved
        self._serving: dict[Replica, None] = {}  # they may still
        self._told: set[Replica] = set()  # of those: to stop
        self.retry = Periodic(
            context,
            context.config.delete_retry_ms,
            "deletions",
            self.go_on,
            is_wanted=lambda: bool(context.deleting or self._waiting),
        )
        self.awaited: set[str] = set()  # to be deleted, created, and not heard of yet

    def shown(self, of: rpc.TopicPartition) -> PartitionState:
        """As metadata shows it: a broker that joins meanwhile must not take it for present."""
        state = self._context.states[of]
        is_deleting = self._context.is_deleting(of)
        return replace(state, leader=rpc.LEADER_DURING_DELETION) if is_deleting else state

    def asked(self) -> Procedure[None]:
        """Read /admin/delete_topics; names of unknown topics are taken off the list."""
        context = self._context
        names = yield from children(paths.DELETE_TOPICS, watch=True)
        unknown = [name for name in names if name not in context.assignments]
        found = yield from calls(
            context.design, (Exists(path=paths.topic(each)) for each in unknown)
        )
        self.awaited = {
            name for name, each in zip(unknown, found, strict=True) if isinstance(each, Found)
        }
        gone = [name for name in unknown if name not in self.awaited]
        yield from one_by_one(Delete(path=f"{paths.DELETE_TOPICS}/{name}") for name in gone)
        known = [name for name in names if name in context.assignments]
        self._waiting |= dict.fromkeys(name for name in known if name not in context.deleting)
        yield from self.go_on()

    def _begin_waiting(self) -> None:
        """Begin with the waiting topics of which no partition moves."""
        moving = {of.topic for of in self._context.moves}
        for topic in [each for each in self._waiting if each not in moving]:
            del self._waiting[topic]
            if topic in self._context.assignments:
                self._context.deleting[topic] = None
                self._begin(topic)

    def _begin(self, topic: str) -> None:
        """Its partitions go offline, and all brokers are told."""
        context, batch = self._context, Batch()
        for of in context.partitions([topic]):
            if of in context.states:
                batch.metadata[of] = self.shown(of)
            self._machines.partitions.become(of, PartitionStage.OFFLINE)
            for broker_id in context.replicas(of):
                self._machines.replicas.become((of, broker_id), ReplicaStage.OFFLINE)
                self._serving[of, broker_id] = None
        batch.update(context.live)
        context.tell(batch)

    def go_on(self) -> Procedure[None]:
        """Take the next phase of each deletion that can go on, and end those that are complete."""
        self._begin_waiting()
        for topic in list(self._context.deleting):
            replicas = self._replicas(topic)
            self._stop(replicas)
            if not self._serving.keys().isdisjoint(replicas):
                continue
            self._deletions.delete(replicas)
            if len(self._machines.replicas.among(replicas, *_ENDED)) == len(replicas):
                yield from self._end(topic)

    def _stop(self, replicas: list[Replica]) -> None:
        """Tell brokers that live, and have not been told, to stop serving."""
        context, batch = self._context, Batch()
        for replica in replicas:
            of, broker_id = replica
            is_untold = replica in self._serving and replica not in self._told
            if is_untold and broker_id in context.live:
                self._told.add(replica)
                batch.stop(broker_id, of, delete=False)
        context.tell(batch)

    def _replicas(self, topic: str) -> list[Replica]:
        """Also those that its partitions have left: a next topic of this name must not have their
        logs."""
        context = self._context
        assigned = [
            (of, each) for of in context.partitions([topic]) for each in context.replicas(of)
        ]
        return assigned + [each for each in self._machines.leaving if each[0].topic == topic]

    def _end(self, topic: str) -> Procedure[None]:
        context = self._context
        below = [state_path(context.design, of) for of in context.partitions([topic])]
        for level in (
            below,
            [paths.parent(path) for path in below],
            [f"{paths.topic(topic)}/partitions"],
            [paths.topic(topic)],
            [paths.config("topics", topic)],
            [f"{paths.DELETE_TOPICS}/{topic}"],
        ):
            yield from calls(context.design, (Delete(path=path) for path in level))
        del self._context.deleting[topic]
        self._machines.forget(topic)
        context.outbox.trace("topic-deleted", topic=topic)

    # --- events -------------------------------------------------------------------------------

    def brokers_down(self, dead: list[int]) -> None:
        self._told = {each for each in self._told if each[1] not in dead}

    def obeyed(self, broker_id: int, command: rpc.StopReplicaRequest, answer: object) -> None:
        """A broker has answered a StopReplica (or never will: None)."""
        if not self._context.deleting:
            return
        refused = refusals(answer)
        if not command.delete_partitions:
            asked = {(of, broker_id) for of in command.partitions}
            for replica in self._told & asked:
                self._told.discard(replica)
                if refused is not None and replica[0] not in refused:
                    del self._serving[replica]
        if refused is not None and len(refused) < len(command.partitions):
            self._context.procedures.submit("deletions", self.go_on)
