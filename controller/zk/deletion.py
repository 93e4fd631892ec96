"""Deletion of topics: all replicas stop serving, then lose their logs, then the znodes are deleted.

A replica whose broker is down, or that has refused, makes its topic wait until the broker is back
or a repeated task tries again (`delete_retry_ms`). A topic that is being reassigned waits, too.

Source: seed 001, "topic deletion", TopicDeletionManager, "single-threaded event queue model".
"""

from dataclasses import replace

from controller.metadata.partitions import PartitionState
from controller.zk.commands import Batch
from controller.zk.controller_context import Context, Periodic
from controller.zk.state_machines import PartitionStage, ReplicaStage, StateMachines
from controller.zk.zk_metadata import calls, children, state_path
from quorum.zookeeper.zk_procedures import Procedure, one_by_one
from wire.errors import ErrorCode
from wire.zk import control_rpc as rpc
from wire.zk import paths
from wire.zk.session import Delete, Exists, Found

__all__ = ["Deletions"]

_ENDED = (ReplicaStage.DELETION_SUCCESSFUL, ReplicaStage.NON_EXISTENT)


class Deletions:
    def __init__(self, context: Context, machines: StateMachines) -> None:
        self._context = context
        self._machines = machines
        self._waiting: dict[str, None] = {}  # until their partitions have moved
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
                batch.stop(broker_id, of, delete=False)
        batch.update(context.live)
        context.tell(batch)

    def go_on(self) -> Procedure[None]:
        """Start the deletions that can start, and end those that are complete."""
        self._begin_waiting()
        for topic in list(self._context.deleting):
            self._start(topic)
            replicas = self._replicas(topic)
            if len(self._machines.replicas.among(replicas, *_ENDED)) == len(replicas):
                yield from self._end(topic)

    def _start(self, topic: str) -> None:
        context, stages = self._context, self._machines.replicas
        for replica in stages.among(self._replicas(topic), ReplicaStage.DELETION_INELIGIBLE):
            stages.become(replica, ReplicaStage.OFFLINE)
        batch = Batch()
        for of, broker_id in stages.among(self._replicas(topic), ReplicaStage.OFFLINE):
            stages.become((of, broker_id), ReplicaStage.DELETION_STARTED)
            if broker_id in context.live:
                batch.stop(broker_id, of, delete=True)
            else:
                stages.become((of, broker_id), ReplicaStage.DELETION_INELIGIBLE)
        context.tell(batch)

    def _replicas(self, topic: str) -> list[tuple[rpc.TopicPartition, int]]:
        context = self._context
        return [(of, each) for of in context.partitions([topic]) for each in context.replicas(of)]

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
        stages = self._machines.replicas
        started = stages.among(self._machines.replicas_on(dead), ReplicaStage.DELETION_STARTED)
        for replica in started:
            stages.become(replica, ReplicaStage.DELETION_INELIGIBLE)

    def obeyed(self, broker_id: int, command: rpc.StopReplicaRequest, answer: object) -> None:
        """A broker has answered a StopReplica (or never will: None)."""
        if not self._context.deleting:
            return
        stages = self._machines.replicas
        replicas = [(of, broker_id) for of in command.partitions if self._context.is_deleting(of)]
        refused = refusals(answer)
        for replica in stages.among(replicas, ReplicaStage.DELETION_STARTED):
            has_failed = refused is None or replica[0] in refused
            failed, ended = ReplicaStage.DELETION_INELIGIBLE, ReplicaStage.DELETION_SUCCESSFUL
            stages.become(replica, failed if has_failed else ended)
        if refused is not None:
            self._context.procedures.submit("deletions", self.go_on)


def refusals(answer: object) -> set[rpc.TopicPartition] | None:
    """The partitions that were not stopped; None: nothing was."""
    if not isinstance(answer, rpc.StopReplicaResponse) or answer.error_code is not ErrorCode.NONE:
        return None
    return {
        rpc.TopicPartition(each.topic, each.partition)
        for each in answer.results
        if each.error_code is not ErrorCode.NONE
    }
