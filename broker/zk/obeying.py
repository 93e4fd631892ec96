"""A broker obeys its controller: becomeLeader, becomeFollower, startReplica, stopReplica.

The four are transitions of any replica (partition.py, replicas.py): a missing replica is started,
one that a newer decision names leads or follows, a stopped one is removed with its log.
This file decides which command is obeyed. A command has to

- have a newer leader epoch than the replica (seed 000, potential optimization 1);
- come from no earlier controller than the broker has heard of, where the design checks that;
- be meant for this life of the broker, where the design knows generations.

Source: seed 000, C; seed 001, "controller-to-broker requests".
"""

from collections.abc import Callable, Mapping

from broker.cluster import Incarnation
from broker.partition.partition import FollowerOf, LeaderOf, Partition
from broker.replicas import Replicas
from broker.zk.view import View
from controller.metadata.partitions import PartitionState
from controller.milestones import Step, milestone
from controller.zk.zk_metadata import ClusterUpdate, topic_id_of
from quorum.core.effects import Reply, Request
from quorum.core.outbox import Outbox
from quorum.core.types import NO_EPOCH
from wire.errors import ErrorCode
from wire.primitives import ZERO_UUID
from wire.zk import control_rpc as rpc
from wire.zk.designs import Design, IsrWriter

__all__ = ["Obeying"]

Handler = Callable[[Request, int], None]
_EARLY_MAX = 100
Command = rpc.LeaderAndIsrRequest | rpc.StopReplicaRequest | rpc.UpdateMetadataRequest


class Obeying:
    def __init__(
        self,
        *,
        design: Design,
        node_id: int,
        outbox: Outbox,
        replicas: Replicas,
        view: View,
        incarnation: Incarnation,
    ) -> None:
        self._design = design
        self._node_id = node_id
        self._outbox = outbox
        self._replicas = replicas
        self._view = view
        self._incarnation = incarnation
        self.controller_epoch = NO_EPOCH  # the highest that was heard
        self._early: list[tuple[Request, Handler]] = []  # before we know who we are
        self._deleted: set[rpc.TopicPartition] | None = None  # by commands, while we read

    # --- commands -----------------------------------------------------------------------------

    def release(self, now_ms: int) -> None:
        """We know our generation now: obey the commands that came too early."""
        early, self._early = self._early, []
        for request, handle in early:
            handle(request, now_ms)

    def _is_early(self, request: Request, body: Command, handle: Handler) -> bool:
        """The controller may know our registration before we do: the first, or the next one."""
        knows = self._design.checks_generation
        is_early = knows and body.broker_generation > self._incarnation.broker_epoch
        if is_early and len(self._early) < _EARLY_MAX:
            self._early.append((request, handle))
        return is_early

    def leader_and_isr(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, rpc.LeaderAndIsrRequest), body
        if self._is_early(request, body, self.leader_and_isr):
            return
        error = self._refusal(body)
        if error is not ErrorCode.NONE:
            self._reply(request, rpc.LeaderAndIsrResponse(error_code=error))
            return
        results = []
        for told in body.partitions:
            error = self._follow(told, now_ms)
            results.append(
                rpc.PartitionError(topic=told.topic, partition=told.partition, error_code=error)
            )
        self._tell_applied("LeaderAndIsr", len(body.partitions))
        if body.is_init:
            named = {(told.topic, told.partition) for told in body.partitions}
            self._replicas.keep_only(named, now_ms)
        self._reply(request, rpc.LeaderAndIsrResponse(results=tuple(results)))

    def stop_replica(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, rpc.StopReplicaRequest), body
        if self._is_early(request, body, self.stop_replica):
            return
        error = self._refusal(body)
        if error is not ErrorCode.NONE:
            self._reply(request, rpc.StopReplicaResponse(error_code=error))
            return
        for of in body.partitions:
            if body.delete_partitions:
                if self._deleted is not None:
                    self._deleted.add(of)
                self._replicas.delete(of.topic, of.partition, now_ms)
            else:
                self._stop(of, now_ms)
        results = tuple(
            rpc.PartitionError(topic=of.topic, partition=of.partition, error_code=ErrorCode.NONE)
            for of in body.partitions
        )
        self._reply(request, rpc.StopReplicaResponse(results=results))

    def update_metadata(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, rpc.UpdateMetadataRequest), body
        if self._is_early(request, body, self.update_metadata):
            return
        error = self._refusal(body)
        if error is ErrorCode.NONE and not all(told.replicas for told in body.partitions):
            error = ErrorCode.INVALID_REQUEST
        if error is ErrorCode.NONE:
            gone = [told.topic for told in body.partitions if _is_being_deleted(told)]
            states = {told.of: state_of(told) for told in body.partitions}
            brokers = {broker.id: broker for broker in body.live_brokers}
            kept = {of: state for of, state in states.items() if of.topic not in gone}
            every = {of.topic for of in states} if body.is_full else None
            self._view.show(
                ClusterUpdate(brokers=brokers, partitions=kept, topics=every, deleted_topics=gone)
            )
            self._tell_applied("UpdateMetadata", len(body.partitions))
        self._reply(request, rpc.UpdateMetadataResponse(error_code=error))

    def _tell_applied(self, command: str, count: int) -> None:
        if count:
            about = milestone(Step.APPLIED, count=count, broker=self._node_id, command=command)
            self._outbox.emit(about)

    def _reply(self, request: Request, body: object) -> None:
        self._outbox.emit(Reply(token=request.token, body=body))

    # --- which are obeyed ---------------------------------------------------------------------

    def _refusal(self, command: Command) -> ErrorCode:
        design = self._design
        if design.checks_generation and command.broker_generation != self._incarnation.broker_epoch:
            self._outbox.trace(
                "command-refused",
                generation=command.broker_generation,
                own=self._incarnation.broker_epoch,
            )
            return ErrorCode.STALE_BROKER_EPOCH
        if design.checks_controller_epoch and command.controller_epoch < self.controller_epoch:
            self._outbox.trace("command-refused", controller_epoch=command.controller_epoch)
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.controller_epoch = max(self.controller_epoch, command.controller_epoch)
        return ErrorCode.NONE

    def _follow(self, told: rpc.LeaderAndIsr, now_ms: int) -> ErrorCode:
        known = self._partition(told.of)
        if known is None or self._is_news(told, known):
            self.obey(told.of, state_of(told), now_ms)
        return ErrorCode.NONE

    def begin_reading(self) -> None:
        """Reading begins while commands may come."""
        self._deleted = set()

    def has_read(self, found: Mapping[rpc.TopicPartition, PartitionState], now_ms: int) -> None:
        """A partition that a command has deleted meanwhile may still be listed: assignments come
        last."""
        deleted, self._deleted = self._deleted or set(), None
        for of, state in sorted(found.items(), key=lambda item: item[0]):
            known = self._partition(of)
            is_gone = known is None and of in deleted
            if not is_gone and (known is None or state.leader_epoch > known.leader_epoch):
                self.obey(of, state, now_ms)

    def _is_news(self, told: rpc.LeaderAndIsr, known: Partition) -> bool:
        """A newer decision than the replica has. Where the controller writes ISRs, a newer version
        in the same leader epoch is one."""
        if self._design.isr_writer is IsrWriter.CONTROLLER and isinstance(
            known.role, LeaderOf | FollowerOf
        ):
            same = told.leader_epoch == known.leader_epoch
            if same and told.zk_version > known.role.partition_epoch:
                return True
        return told.leader_epoch > known.leader_epoch

    def obey(self, of: rpc.TopicPartition, state: PartitionState, now_ms: int) -> None:
        """Also of what was read at the start. Who is told of a replica has it, and so have all in
        the ISR: seed 000's commands do not say who else is assigned."""
        members = (*state.replicas, *state.isr, self._node_id)
        if state.leader >= 0:
            members += (state.leader,)
        whole = PartitionState(
            replicas=tuple(dict.fromkeys(members)),
            isr=state.isr,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
        )
        topic_id = topic_id_of(of.topic)
        self._replicas.obey(of.topic, topic_id, of.partition, whole, now_ms)
        self._view.miss(of.topic, state.leader)

    def _stop(self, of: rpc.TopicPartition, now_ms: int) -> None:
        """The replica neither leads nor follows until it is told to."""
        known = self._partition(of)
        if known is not None and known.log is not None:
            role = known.role
            self._replicas.obey(
                of.topic,
                known.topic_id,
                of.partition,
                PartitionState(
                    replicas=(self._node_id,),
                    isr=(),
                    leader=-1,
                    leader_epoch=known.leader_epoch,
                    partition_epoch=getattr(role, "partition_epoch", 0) + 1,
                ),
                now_ms,
            )

    def _partition(self, of: rpc.TopicPartition) -> Partition | None:
        found = self._replicas.find(of.topic, ZERO_UUID, of.partition)
        return found if isinstance(found, Partition) else None


def state_of(told: rpc.LeaderAndIsr) -> PartitionState:
    return PartitionState(
        replicas=told.replicas,
        isr=told.isr,
        leader=told.leader,
        leader_epoch=told.leader_epoch,
        partition_epoch=told.zk_version,
    )


def _is_being_deleted(told: rpc.LeaderAndIsr) -> bool:
    return told.leader == rpc.LEADER_DURING_DELETION
