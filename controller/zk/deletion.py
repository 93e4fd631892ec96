"""Deleting topics: all replicas stop serving, then all of them lose their logs, then the znodes go.

A replica whose broker is down, or that has refused, makes its topic wait: until the broker is back,
and in any case until a repeated task tries again (`delete_retry_ms`). A topic that is being
reassigned waits, too.

Source: seed 001, "topic deletion", TopicDeletionManager, "single-threaded event queue model".
"""

from dataclasses import replace

from controller.metadata.partitions import PartitionState
from controller.metadata.znode_reading import calls, children, state_path
from controller.zk.commands import Batch
from controller.zk.controller_context import Context
from controller.zk.state_machines import PartitionStage, ReplicaStage, Stage
from quorum.zookeeper.zk_procedures import Procedure, one_by_one
from wire.errors import ErrorCode
from wire.zk import paths
from wire.zk.control_rpc import (
    LEADER_DURING_DELETION,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicPartition,
)
from wire.zk.session import Delete, Exists, Found

__all__ = ["Deletions"]

_ENDED = (ReplicaStage.DELETION_SUCCESSFUL, ReplicaStage.NON_EXISTENT)


class Deletions:
    def __init__(self, context: Context, stage: Stage) -> None:
        self._context = context
        self._stage = stage
        self._pending: dict[str, None] = {}
        self._waiting: dict[str, None] = {}  # until their partitions have moved
        self._next_retry_ms: int | None = None
        self.awaited: set[str] = set()  # to be deleted, created, and not heard of yet

    def concerns(self, of: TopicPartition) -> bool:
        return self.ends(of.topic)

    def ends(self, topic: str) -> bool:
        return topic in self._pending

    def shown(self, of: TopicPartition) -> PartitionState:
        """As metadata tells of it: who comes while it is deleted must not take it for there."""
        state = self._context.states[of]
        return replace(state, leader=LEADER_DURING_DELETION) if self.concerns(of) else state

    def asked(self) -> Procedure[None]:
        """What /admin/delete_topics names; what is no topic is taken off the list."""
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
        wanted = [name for name in names if name in context.assignments]
        self._waiting |= dict.fromkeys(name for name in wanted if name not in self._pending)
        yield from self.go_on()

    def _begin_waiting(self) -> None:
        """The topics of which nothing moves."""
        moving = {of.topic for of in self._context.moves}
        for topic in [each for each in self._waiting if each not in moving]:
            del self._waiting[topic]
            if topic in self._context.assignments:
                self._pending[topic] = None
                self._begin(topic)

    def _begin(self, topic: str) -> None:
        """Nobody leads it any more, and everybody knows."""
        context, batch = self._context, Batch()
        for of in context.partitions([topic]):
            if of in context.states:
                batch.metadata[of] = self.shown(of)
            self._stage.partitions.become(of, PartitionStage.OFFLINE)
            for broker_id in context.replicas(of):
                self._stage.replicas.become((of, broker_id), ReplicaStage.OFFLINE)
                batch.stop(broker_id, of, delete=False)
        batch.update(context.live)
        context.tell(batch)

    def go_on(self) -> Procedure[None]:
        """Start what can be started, end what is done."""
        self._begin_waiting()
        for topic in list(self._pending):
            self._start(topic)
            replicas = self._replicas(topic)
            if len(self._stage.replicas.among(replicas, *_ENDED)) == len(replicas):
                yield from self._end(topic)

    def _start(self, topic: str) -> None:
        context, stages = self._context, self._stage.replicas
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

    def _replicas(self, topic: str) -> list[tuple[TopicPartition, int]]:
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
        del self._pending[topic]
        self._stage.forget(topic)
        context.outbox.trace("topic-deleted", topic=topic)

    # --- events -------------------------------------------------------------------------------

    def brokers_down(self, dead: list[int]) -> None:
        stages = self._stage.replicas
        started = stages.among(self._stage.replicas_on(dead), ReplicaStage.DELETION_STARTED)
        for replica in started:
            stages.become(replica, ReplicaStage.DELETION_INELIGIBLE)

    def obeyed(self, broker_id: int, command: StopReplicaRequest, answer: object) -> None:
        """The callback of a request, as an event of the queue."""
        if not self._pending:
            return
        stages = self._stage.replicas
        replicas = [(of, broker_id) for of in command.partitions if self.concerns(of)]
        refused = refusals(answer)
        for replica in stages.among(replicas, ReplicaStage.DELETION_STARTED):
            has_failed = refused is None or replica[0] in refused
            ending = (
                ReplicaStage.DELETION_INELIGIBLE if has_failed else ReplicaStage.DELETION_SUCCESSFUL
            )
            stages.become(replica, ending)
        if refused is not None:
            self._context.procedures.submit("deletions", self.go_on)

    def tick(self, now_ms: int) -> None:
        interval_ms = self._context.config.delete_retry_ms
        if not self._pending and not self._waiting:
            self._next_retry_ms = None
        elif self._next_retry_ms is None:
            self._next_retry_ms = now_ms + interval_ms
        elif now_ms >= self._next_retry_ms:
            self._next_retry_ms = now_ms + interval_ms
            self._context.procedures.submit("deletions", self.go_on)

    def deadline_ms(self) -> int | None:
        if (self._pending or self._waiting) and self._next_retry_ms is None:
            return self._context.now_ms
        return self._next_retry_ms


def refusals(answer: object) -> set[TopicPartition] | None:
    """The partitions that were not stopped; None: nothing was."""
    if not isinstance(answer, StopReplicaResponse) or answer.error_code is not ErrorCode.NONE:
        return None
    return {
        TopicPartition(each.topic, each.partition)
        for each in answer.results
        if each.error_code is not ErrorCode.NONE
    }
