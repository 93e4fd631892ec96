"""Reassignment in `zk-redesign`: the replica set expands, waits, and contracts.

Expansion: the assignment becomes the new replicas followed by the old ones, and all are told. The
controller watches the partition's state until all of them are in sync, the old ones too.

Contraction: leadership moves to one of the new replicas if it must, the others are stopped and
deleted, and the assignment is the new replicas. The move ends when the brokers have answered; a
broker that is down deletes its replica when it is back. What is being reassigned is not reassigned
again before that.

With KIP-455 (`Design.has_kip_455`) it waits for the new replicas alone. If the node is written
again while partitions move, they are redirected; if it names their former replicas, the move is
cancelled. The topic's node names the new replicas, as Apache Kafka writes it from 2.4 on, so that
the next controller knows them as well.

Source: seed 001, "partition reassignment"; KafkaController.onPartitionReassignment's comment for
the order of steps.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

from controller.metadata.partitions import PartitionState
from controller.milestones import Cause, Occasion
from controller.zk import partition_states
from controller.zk.controller_context import Context, Move, Periodic
from controller.zk.replica_deletions import ReplicaDeletions
from controller.zk.state_machines import ReplicaStage, StateMachines
from controller.zk.zk_metadata import decoded, read_states, readable, state_path, write_over
from quorum.zookeeper.zk_procedures import Procedure, all_at_once, one
from wire.zk import paths
from wire.zk.control_rpc import StopReplicaRequest, TopicPartition
from wire.zk.session import Data, Delete, Exists, GetData, SetData, Written
from wire.zk.znodes import Reassignments, TopicAssignment

__all__ = ["Reassigner"]

_NO_NODE = -2  # the version of none; -1 would be that of any


class _Phase(Enum):
    """How far a move is. An event begins anew when the connection has gone meanwhile."""

    BEGUN = "its replicas have to be told"
    EXPANDED = "they have to be in sync"
    CONTRACTING = "leader, ISR and assignment have to be written"
    LEAVING = "brokers have to delete the old replicas"


class Reassigner:
    def __init__(
        self, context: Context, machines: StateMachines, replicas: ReplicaDeletions
    ) -> None:
        self._context = context
        self._machines = machines
        self._deletions = replicas
        self._phases: dict[TopicPartition, _Phase] = {}  # of those that move
        self._is_node_old = False  # it lists what has ended
        self._listed: Mapping[tuple[str, int], tuple[int, ...]] = {}
        self._node_version = _NO_NODE
        self.retry = Periodic(
            context,
            context.config.delete_retry_ms,
            "replicas that have left",
            self._try_again,
            is_wanted=lambda: replicas.is_incomplete,
        )

    def asked(self) -> Procedure[None]:
        """Read what the administrator's node asks for, and begin it."""
        context = self._context
        yield from one(Exists(path=paths.REASSIGN_PARTITIONS, watch=True))
        found = yield from one(GetData(path=paths.REASSIGN_PARTITIONS))
        listed = decoded(found, Reassignments.decode)
        if listed is None or not isinstance(found, Data):
            self._node_version = _NO_NODE
            return
        self._listed, self._node_version = listed.replicas, found.stat.version
        for topic, _ in list(listed.replicas)[:1]:
            context.milestones.begin(
                Cause(Occasion.REASSIGNMENT, topic), heard=paths.REASSIGN_PARTITIONS
            )
        for (topic, partition), target in listed.replicas.items():
            of = TopicPartition(topic, partition)
            if not target or not context.replicas(of) or context.is_deleting(of):
                continue
            if of in context.moves:
                if context.design.has_kip_455 and self._may_redirect(of, target):
                    yield from self._redirect(of, target)
            else:
                original = yield from self._original(of)
                if not target == original == context.replicas(of):
                    yield from self._expand(of, Move(original=original, target=target))
        yield from self.look()
        yield from self._write_what_is_left()

    def _original(self, of: TopicPartition) -> Procedure[tuple[int, ...]]:
        """The replicas before the move, which an earlier controller may have begun."""
        found = yield from one(GetData(path=paths.topic(of.topic)))
        assignment = decoded(found, TopicAssignment.decode)
        adding = () if assignment is None else assignment.adding.get(of.partition, ())
        return tuple(each for each in self._context.replicas(of) if each not in adding)

    def _may_redirect(self, of: TopicPartition, target: tuple[int, ...]) -> bool:
        """One that contracts ends first."""
        is_other = target != self._context.moves[of].target
        return is_other and self._phases[of] in (_Phase.BEGUN, _Phase.EXPANDED)

    def _redirect(self, of: TopicPartition, target: tuple[int, ...]) -> Procedure[None]:
        """Replicas that were added for the earlier target and are not in this one are removed
        first. If only such a replica is in sync, it goes with the old replicas."""
        context, move = self._context, self._context.moves[of]
        if set(target) == set(move.original) and (yield from self._contract(of, target)):
            return
        staying = tuple(
            each for each in context.replicas(of) if each in target or each in move.original
        )
        if staying != context.replicas(of):
            yield from self._remove(of, staying)
        yield from self._expand(of, replace(move, target=target))

    def _expand(self, of: TopicPartition, move: Move) -> Procedure[None]:
        """Replicas that are being deleted, of an earlier target, have to be gone first."""
        known = self._context.replicas(of)
        new = [(of, each) for each in move.target if each not in known]
        self._context.moves[of], self._phases[of] = move, _Phase.BEGUN
        if self._machines.replicas.among(new, ReplicaStage.DELETION_STARTED):
            return
        for replica in new:
            self._machines.add(replica)
        yield from self._assign(of, tuple(dict.fromkeys((*move.target, *known))))
        yield from self._machines.change([of], _told_anew)
        self._phases[of] = _Phase.EXPANDED

    def look(self) -> Procedure[None]:
        """Go on with each move as far as it can go by now."""
        context, phases = self._context, self._phases
        if not context.moves and not self._is_node_old:
            return
        asked = sorted(context.moves)
        for of in asked[:1]:
            context.milestones.go_on(Cause(Occasion.REASSIGNMENT, of.topic))
        for of in asked:
            if phases[of] is _Phase.BEGUN:
                yield from self._expand(of, context.moves[of])
        yield from all_at_once(
            Exists(path=state_path(context.design, of), watch=True) for of in asked
        )
        states = yield from read_states(context.design, context.assignments, asked)
        context.states |= states
        for of, state in states.items():
            is_there = phases[of] is _Phase.EXPANDED and self._awaited(of) <= set(state.isr)
            if is_there or phases[of] is _Phase.CONTRACTING:
                phases[of] = _Phase.CONTRACTING
                yield from self._contract(of, context.moves[of].target)
        yield from self._end(asked)

    def _end(self, asked: list[TopicPartition]) -> Procedure[None]:
        """End the moves whose old replicas are deleted, or are on brokers that are down."""
        context, phases = self._context, self._phases
        is_asked_again = False
        for of in asked:
            is_gone = of.topic not in context.assignments
            has_left = phases[of] is _Phase.LEAVING and not self._deletions.is_leaving(of)
            if is_gone or has_left:
                self._is_node_old = True
                is_asked_again |= self._wanted(of) != context.moves[of].target
                del context.moves[of], phases[of]
        if is_asked_again:
            yield from self.asked()
        elif self._is_node_old:
            yield from self._write_what_is_left()

    def _wanted(self, of: TopicPartition) -> tuple[int, ...]:
        """With KIP-455, a move that contracts may be followed by another."""
        target = self._context.moves[of].target
        is_late = self._phases[of] in (_Phase.CONTRACTING, _Phase.LEAVING)
        may_follow = self._context.design.has_kip_455 and is_late
        return self._listed.get((of.topic, of.partition), target) if may_follow else target

    def obeyed(self, command: StopReplicaRequest) -> None:
        """A broker has answered."""
        if any(of in self._phases for of in command.partitions):
            self._context.procedures.submit("reassigned partitions", self.look)

    def _try_again(self) -> Procedure[None]:
        self._deletions.try_again()
        yield from self.look()

    def _awaited(self, of: TopicPartition) -> set[int]:
        """The replicas that have to be in sync before any is removed."""
        context = self._context
        is_for_new = context.design.has_kip_455
        return set(context.moves[of].target if is_for_new else context.replicas(of))

    def _contract(self, of: TopicPartition, target: tuple[int, ...]) -> Procedure[bool]:
        """False: none of `target` is in sync."""
        self._context.moves[of] = replace(self._context.moves[of], target=target)
        if not (yield from self._remove(of, target)):
            return False
        self._phases[of] = _Phase.LEAVING
        return True

    def _remove(self, of: TopicPartition, target: tuple[int, ...]) -> Procedure[bool]:
        """Remove replicas that are not in `target`. False: none of that is in sync.

        The assignment is written last: until then the next controller does all of it again.
        """
        context, stages = self._context, self._machines.replicas
        old = [each for each in context.replicas(of) if each not in target]

        def decide(_of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
            if state is None or set(target).isdisjoint(state.isr):
                return None
            return partition_states.reassigned(state, target, context.live)

        if not (yield from self._machines.change([of], decide)):
            return False
        for broker_id in target:
            if stages.of((of, broker_id)) is ReplicaStage.NEW:
                stages.become((of, broker_id), ReplicaStage.ONLINE)
        self._deletions.leave(of, old)
        yield from self._assign(of, target, ended=True)
        return True

    def _assign(
        self, of: TopicPartition, replicas: tuple[int, ...], *, ended: bool = False
    ) -> Procedure[None]:
        """Write the assignment, then note it: an event that begins anew must find it unwritten."""
        context = self._context
        moves = {
            each.partition: move
            for each, move in context.moves.items()
            if each.topic == of.topic and not (ended and each == of)
        }
        known: Mapping[int, tuple[int, ...]] = context.assignments[of.topic]

        def after(data: bytes | None) -> bytes | None:
            listed = readable(data, TopicAssignment.decode)  # it may have grown
            if listed is None:
                return None
            assignment = TopicAssignment(
                partitions={**listed.partitions, **known, of.partition: replicas},
                version=2 if moves else 1,
                adding={partition: move.adding for partition, move in moves.items()},
                removing={partition: move.removing for partition, move in moves.items()},
            )
            return assignment.encode()

        yield from write_over(paths.topic(of.topic), after)
        context.assignments[of.topic] = {**known, of.partition: replicas}

    def _write_what_is_left(self) -> Procedure[None]:
        """At the version that was read: a later write by others is the next event."""
        path, moves = paths.REASSIGN_PARTITIONS, self._context.moves
        left = {(of.topic, of.partition): self._wanted(of) for of in moves}
        if self._node_version != _NO_NODE and left != self._listed:
            data = Reassignments(replicas=left).encode()
            write = SetData(path=path, data=data, version=self._node_version)
            delete = Delete(path=path, version=self._node_version)
            result = yield from one(write if left else delete)
            self._node_version = result.stat.version if isinstance(result, Written) else _NO_NODE
            self._listed = left
        self._is_node_old = False


def _told_anew(_of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
    """The same leader and ISR in a new epoch, so that all replicas, old and new, obey the
    command."""
    return None if state is None else replace(state, leader_epoch=state.leader_epoch + 1)
