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
from controller.zk.reassignment_nodes import ReassignmentNodes
from controller.zk.replica_deletions import ReplicaDeletions
from controller.zk.state_machines import Replica, ReplicaStage, StateMachines
from controller.zk.zk_metadata import calls, read_states, state_path
from quorum.zookeeper.zk_procedures import Procedure
from wire.zk.control_rpc import StopReplicaRequest, TopicPartition
from wire.zk.session import Exists
from wire.zk.znodes import TopicAssignment

__all__ = ["Reassigner"]


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
        self._unread: set[TopicPartition] = set()  # whose states have to be read, and watched
        self._reading: set[TopicPartition] = set()  # and are
        self._is_node_old = False  # it lists what has ended
        self._nodes = ReassignmentNodes(context)
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
        listed = yield from self._nodes.read()
        if listed is None:
            return
        able = {
            of: target
            for of, target in listed.items()
            if target and context.replicas(of) and not context.is_deleting(of)
        }
        if context.design.has_kip_455:
            for of in sorted(context.moves.keys() & able.keys()):
                if able[of] != context.moves[of].target:
                    yield from self._redirect(of, able[of])
        new = {of: target for of, target in able.items() if of not in context.moves}
        originals = yield from self._nodes.originals(new)
        yield from self._expand(
            {
                of: Move(original=originals[of], target=target)
                for of, target in new.items()
                if not target == originals[of] == context.replicas(of)
            }
        )
        yield from self.look()
        yield from self._write_what_is_left()

    def take_over(self, topics: Mapping[str, TopicAssignment]) -> Procedure[None]:
        """Go on with what is asked for. A partition that moves, says its topic's node, and is no
        longer asked to, may have contracted already: its leader has to hear who is assigned."""
        context = self._context
        yield from self.asked()
        said = [
            TopicPartition(topic, partition)
            for topic, each in sorted(topics.items())
            for partition in sorted({*each.adding, *each.removing})
        ]
        left = {
            of: context.replicas(of)
            for of in said
            if of not in context.moves and context.replicas(of) and not context.is_deleting(of)
        }
        yield from self._machines.change(left, _told_anew)
        yield from self._nodes.assign(left, self._moving())

    def _redirect(self, of: TopicPartition, target: tuple[int, ...]) -> Procedure[None]:
        """Replicas that were added for the earlier target and are not in this one are removed
        first. If only such a replica is in sync, it goes with the old replicas. One that has
        contracted ends here: what follows is another move."""
        context, move = self._context, self._context.moves[of]
        if self._phases[of] is _Phase.LEAVING:
            self._forget(of)
            return
        if set(target) == set(move.original):
            yield from self._contract({of: target})
            if self._phases[of] is _Phase.LEAVING:
                return
        staying = tuple(
            each for each in context.replicas(of) if each in target or each in move.original
        )
        if staying != context.replicas(of):
            yield from self._remove({of: staying})
        yield from self._expand({of: replace(move, target=target)})

    def _expand(self, moves: Mapping[TopicPartition, Move]) -> Procedure[None]:
        """Replicas that are being deleted, of an earlier target, have to be gone first."""
        context, after = self._context, {}
        for of, move in moves.items():
            known = context.replicas(of)
            new = [(of, each) for each in move.target if each not in known]
            context.moves[of], self._phases[of] = move, _Phase.BEGUN
            if not self._machines.replicas.among(new, ReplicaStage.DELETION_STARTED):
                for replica in new:
                    self._machines.add(replica)
                after[of] = tuple(dict.fromkeys((*move.target, *known)))
        yield from self._nodes.assign(after, self._moving())
        self._note(after)
        yield from self._machines.change(after, _told_anew)
        self._phases |= dict.fromkeys(after, _Phase.EXPANDED)
        self._unread |= after.keys()

    def state_changed(self, of: TopicPartition) -> None:
        """The state that is watched has been written."""
        if self._phases.get(of) in (_Phase.EXPANDED, _Phase.CONTRACTING):
            self._unread.add(of)
            self._context.procedures.submit("reassigned partitions", self.look)

    def look(self) -> Procedure[None]:
        """Go on with each move as far as it can go by now."""
        context = self._context
        if not context.moves and not self._is_node_old:
            return
        for of in [each for each in context.moves if each.topic not in context.assignments]:
            self._forget(of)
        for of in sorted(context.moves)[:1]:
            context.milestones.go_on(Cause(Occasion.REASSIGNMENT, of.topic))
        yield from self._expand({of: context.moves[of] for of in self._among(_Phase.BEGUN)})
        waiting = self._among(_Phase.EXPANDED, _Phase.CONTRACTING)
        unread = [of for of in waiting if of in self._unread or of in self._reading]
        self._reading = set(unread)
        self._unread.clear()  # what is written from now on has to be read again
        yield from calls(
            context.design,
            (Exists(path=state_path(context.design, of), watch=True) for of in unread),
        )
        states = yield from read_states(context.design, context.assignments, unread)
        self._reading = set()
        context.states |= states
        expanded = self._among(_Phase.EXPANDED)
        are_there = [
            of for of in expanded if of in states and self._awaited(of) <= set(states[of].isr)
        ]
        contracting = (*are_there, *self._among(_Phase.CONTRACTING))
        yield from self._contract({of: context.moves[of].target for of in contracting})
        yield from self._end()

    def _among(self, *phases: _Phase) -> list[TopicPartition]:
        return sorted(of for of, phase in self._phases.items() if phase in phases)

    def _end(self) -> Procedure[None]:
        """End the moves whose old replicas are deleted, or are on brokers that are down."""
        for of in self._among(_Phase.LEAVING):
            if not self._deletions.is_leaving(of):
                self._forget(of)
        if self._is_node_old:
            yield from self._write_what_is_left()

    def _forget(self, of: TopicPartition) -> None:
        del self._context.moves[of], self._phases[of]
        self._is_node_old = True

    def _write_what_is_left(self) -> Procedure[None]:
        yield from self._nodes.write({of: move.target for of, move in self._context.moves.items()})
        self._is_node_old = False

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

    def _contract(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Procedure[None]:
        """One that has nobody of its target in sync does not contract."""
        for of, target in targets.items():
            self._context.moves[of] = replace(self._context.moves[of], target=target)
            self._phases[of] = _Phase.CONTRACTING
        done = yield from self._remove(targets)
        self._phases |= dict.fromkeys(done, _Phase.LEAVING)
        self._unread |= targets.keys() - done

    def _remove(
        self, targets: Mapping[TopicPartition, tuple[int, ...]]
    ) -> Procedure[set[TopicPartition]]:
        """Remove replicas that are not in the targets, except where nobody of those is in sync.
        Returns where they were removed.

        The assignment is written last: until then the next controller does all of it again.
        """
        context, stages = self._context, self._machines.replicas

        def decide(of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
            if state is None or set(targets[of]).isdisjoint(state.isr):
                return None
            return partition_states.reassigned(state, targets[of], context.live)

        written = yield from self._machines.change(targets, decide)
        after = {of: targets[of] for of in written}
        old: list[Replica] = []
        for of, target in after.items():
            for broker_id in target:
                if stages.of((of, broker_id)) is ReplicaStage.NEW:
                    stages.become((of, broker_id), ReplicaStage.ONLINE)
            old += [(of, each) for each in context.replicas(of) if each not in target]
        self._note(after)
        self._deletions.leave(old)
        left = {of: move for of, move in self._moving().items() if of not in after}
        yield from self._nodes.assign(after, left)
        return set(after)

    def _note(self, replicas: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        assignments = self._context.assignments
        for of, each in replicas.items():
            assignments[of.topic] = {**assignments[of.topic], of.partition: each}

    def _moving(self) -> dict[TopicPartition, Move]:
        """Those that have not contracted."""
        moves, phases = self._context.moves, self._phases
        return {of: moves[of] for of in moves if phases[of] is not _Phase.LEAVING}


def _told_anew(_of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
    """The same leader and ISR in a new epoch, so that all replicas, old and new, obey the
    command."""
    return None if state is None else replace(state, leader_epoch=state.leader_epoch + 1)
