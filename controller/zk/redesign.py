"""The controller of `zk-redesign`: ten protocols, each of them an event of one queue.

An event reads the nodes, decides for all partitions that it affects, writes with all calls in
flight, and sends the commands to the brokers in one batch. Partitions and replicas have explicit
states (`controller.zk.state_machines`). Topics are deleted in `deletion.py`, and partitions
reassigned in `zk_reassignment.py`.

Leadership moves back to the first replica where an administrator asks for it, and from time to time
(`PreferredLeaders`). `controller.zk.partition_states` elects; partitions of a topic that is being
deleted are left alone.

Source: seed 001, "Protocols", "Current Design", "Proposed Controller Improvements" and "preferred
replica leader election"; Kafka's auto.leader.rebalance.enable.
"""

from collections.abc import Callable, Iterable

from controller.metadata.election import Election
from controller.metadata.partitions import PartitionState
from controller.milestones import Cause, Occasion
from controller.zk import partition_states
from controller.zk.alter_isr import IsrChanges
from controller.zk.commands import Batch
from controller.zk.commands import Request as Command
from controller.zk.controller_context import Context, Duties, Periodic
from controller.zk.deletion import Deletions
from controller.zk.replica_deletions import ReplicaDeletions
from controller.zk.state_machines import StateMachines
from controller.zk.zk_metadata import (
    calls,
    children,
    decoded,
    read_assignments,
    read_states,
    read_topics,
)
from controller.zk.zk_reassignment import Reassigner
from quorum.core.effects import Request
from quorum.zookeeper.zk_procedures import Procedure, one
from wire.errors import ErrorCode
from wire.zk import control_rpc as rpc
from wire.zk import paths
from wire.zk.designs import IsrWriter
from wire.zk.session import Data, Delete, Exists, GetData
from wire.zk.znodes import PartitionList

__all__ = ["PreferredLeaders", "RedesignDuties"]


class RedesignDuties(Duties):
    def __init__(self, context: Context) -> None:
        self._context = context
        self._machines = StateMachines(context)
        self._replicas = ReplicaDeletions(context, self._machines)
        self._deletions = Deletions(context, self._machines, self._replicas)
        self._reassigner = Reassigner(context, self._machines, self._replicas)
        self._isr_changes = IsrChanges(context, self._machines)
        self._preferred = PreferredLeaders(context, self._machines)
        self.timed = (
            self._deletions.retry,
            self._reassigner.retry,
            self._isr_changes,
            self._preferred.balancing,
        )
        # An event begins anew when the connection has gone meanwhile; what it noticed is kept.
        self._generations: dict[int, int] = {}  # of the brokers, as last dealt with
        self._created: dict[rpc.TopicPartition, None] = {}

    # --- controller leader election -----------------------------------------------------------

    def take_over(self) -> Procedure[None]:
        """Leave watches, read the cluster, resume what was under way, and tell the brokers."""
        context = self._context
        yield from context.read_live_brokers()
        self._generations = self._lives()
        names = yield from children(paths.TOPICS, watch=True)
        topics = yield from read_topics(context.design, names, watch=True)
        context.assignments = {name: each.partitions for name, each in topics.items()}
        context.states = yield from read_states(context.design, context.assignments)
        self._machines.begin()
        self._tell_everything(context.live)
        yield from self._machines.elect_offline()
        yield from self._machines.elect(self._with_dead_members())
        if context.design.isr_writer is IsrWriter.LEADER_NOTIFYING:
            yield from self.isr_changed()
        yield from self.topics_to_delete()
        yield from self._reassigner.take_over(topics)
        yield from self._preferred.asked()

    def _with_dead_members(self) -> list[rpc.TopicPartition]:
        """Partitions of brokers that died while there was no controller: mostly the former one."""
        context = self._context
        return [
            of
            for of in context.partitions()
            if not context.is_deleting(of)
            and (state := context.states.get(of)) is not None
            and not context.live.keys() >= set(state.isr)
        ]

    def _tell_everything(self, broker_ids: Iterable[int]) -> None:
        """Tell brokers all that they have to hold. A broker that was away while a partition moved
        from it, or while a move to it was cancelled, still has the log."""
        context, batch = self._context, Batch(is_full=True, is_init=True)
        asked = set(broker_ids)
        for broker_id in asked:
            batch.leader_and_isr[broker_id] = {}  # also of one that has nothing
        for of, state in context.states.items():
            if not context.is_deleting(of):  # who has deleted it must not begin anew
                batch.tell(asked.intersection(context.replicas(of)), of, state)
        batch.metadata |= {of: self._deletions.shown(of) for of in context.states}
        batch.update(asked)
        context.tell(batch)

    # --- broker join, broker failure ----------------------------------------------------------

    def brokers_changed(self) -> Procedure[None]:
        """A broker that left and came back between two reads has failed and joined, by its
        generation; a design without generations does not notice it."""
        before = self._generations
        yield from self._context.read_live_brokers()
        after = self._lives()
        dead = sorted(each for each in before if after.get(each) != before[each])
        new = sorted(each for each in after if before.get(each) != after[each])
        self._context.notices_brokers(gone=dead, new=new)
        if dead:
            yield from self._broker_failed(dead)
        if new:
            yield from self._broker_joined(new)
        self._generations = after

    def _lives(self) -> dict[int, int]:
        context = self._context
        knows = context.design.checks_generation
        return {each.id: each.generation if knows else 0 for each in context.live.values()}

    def _on(self, broker_ids: Iterable[int]) -> list[rpc.TopicPartition]:
        """The partitions with a replica on one of the brokers, except those being deleted."""
        context, wanted = self._context, set(broker_ids)
        return [
            of
            for of in context.partitions()
            if not wanted.isdisjoint(context.replicas(of)) and not context.is_deleting(of)
        ]

    def _broker_failed(self, dead: list[int]) -> Procedure[None]:
        context = self._context
        affected = self._on(dead)
        self._machines.brokers_down(dead)
        yield from self._machines.elect(affected, without=dead)
        self._replicas.brokers_down(dead)
        self._deletions.brokers_down(dead)
        context.tell(Batch(updated=set(context.live)))
        yield from self._reassigner.look()

    def _broker_joined(self, new: list[int]) -> Procedure[None]:
        context = self._context
        self._machines.brokers_up(new)
        context.tell(Batch(updated=context.live.keys() - set(new)))
        self._tell_everything(new)
        yield from self._machines.elect_offline()
        yield from self._reassigner.look()
        yield from self._deletions.go_on()

    # --- topics -------------------------------------------------------------------------------

    def topics_changed(self) -> Procedure[None]:
        context = self._context
        names = set((yield from children(paths.TOPICS, watch=True)))
        gone = context.assignments.keys() - names - context.deleting.keys()  # brokers have those
        for topic in sorted(gone):
            self._machines.forget(topic)
        new = sorted(names - context.assignments.keys())
        for topic in new[:1]:
            context.milestones.begin(Cause(Occasion.TOPIC, topic), heard=paths.TOPICS)
        found = yield from read_assignments(context.design, new, watch=True)
        context.assignments |= found
        yield from self._create(context.partitions(found))
        if not self._deletions.awaited.isdisjoint(found):
            yield from self._deletions.asked()

    def _create(self, partitions: Iterable[rpc.TopicPartition]) -> Procedure[None]:
        self._created |= dict.fromkeys(partitions)
        yield from self._machines.create(list(self._created))
        self._created.clear()

    def assignment_changed(self, topic: str) -> Procedure[None]:
        """Partition expansion. What the controller has written itself is known already."""
        context = self._context
        found = yield from read_assignments(context.design, [topic], watch=True)
        if topic not in found or topic not in context.assignments or topic in context.deleting:
            return
        known = context.assignments[topic]
        added = {number: each for number, each in found[topic].items() if number not in known}
        if added:
            context.milestones.begin(Cause(Occasion.TOPIC, topic), heard=paths.topic(topic))
        context.assignments[topic] = {**known, **added}
        yield from self._create(rpc.TopicPartition(topic, number) for number in sorted(added))

    def topics_to_delete(self) -> Procedure[None]:
        yield from self._deletions.asked()

    # --- what leaders tell, and brokers that leave --------------------------------------------

    def isr_changed(self) -> Procedure[None]:
        """/isr_change_notification: read the ISRs that leaders have written, and tell all
        brokers."""
        context = self._context
        names = yield from children(paths.ISR_CHANGES, watch=True)
        notes = [f"{paths.ISR_CHANGES}/{name}" for name in names]
        found = yield from calls(context.design, (GetData(path=path) for path in notes))
        listed = [each for result in found if (each := decoded(result, PartitionList.decode))]
        if listed:
            context.milestones.begin(Cause(Occasion.ISR), heard=paths.ISR_CHANGES)
        asked = {rpc.TopicPartition(*each) for one_note in listed for each in one_note.partitions}
        known = sorted(of for of in asked if context.replicas(of) and not context.is_deleting(of))
        states = yield from read_states(context.design, context.assignments, known)
        context.states |= states
        context.tell(Batch(metadata=dict(states), updated=set(context.live) if states else set()))
        yield from calls(context.design, (Delete(path=path) for path in notes))
        yield from self._reassigner.look()

    def controlled_shutdown(self, request: Request) -> Procedure[None]:
        context = self._context
        body = request.body
        assert isinstance(body, rpc.ControlledShutdownRequest), body
        leaving = body.broker_id
        if (
            context.design.checks_generation
            and self._lives().get(leaving) != body.broker_generation
        ):
            context.reply(
                request, rpc.ControlledShutdownResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
            )
            return
        context.milestones.begin(Cause(Occasion.CONTROLLED_SHUTDOWN, leaving))
        affected = self._on([leaving])
        yield from self._machines.elect(affected, without=[leaving], is_orderly=True)
        led = context.remaining(affected, leaving)
        batch = Batch()
        for of in affected:
            if of not in led:
                batch.stop(leaving, of, delete=False)
        context.tell(batch)
        if not context.design.batches_commands:
            context.tell(batch)  # KafkaController and ReplicaStateMachine have a batch each
        answer = rpc.ControlledShutdownResponse(remaining=led)
        told = {each for of in affected for each in context.replicas(of)}
        context.commands.when_delivered(told, lambda: context.reply(request, answer))

    # --- events -------------------------------------------------------------------------------

    def watch_fired(self, path: str) -> None:
        submit = self._context.procedures.submit
        events: dict[str, Callable[[], Procedure[None]]] = {
            paths.BROKER_IDS: self.brokers_changed,
            paths.TOPICS: self.topics_changed,
            paths.DELETE_TOPICS: self.topics_to_delete,
            paths.REASSIGN_PARTITIONS: self._reassigner.asked,
            paths.PREFERRED_REPLICA_ELECTION: self._preferred.asked,
            paths.ISR_CHANGES: self.isr_changed,
        }
        if path in events:
            submit(path, events[path])
        elif paths.parent(path) == paths.TOPICS:
            topic = paths.last_name(path)
            submit(path, lambda: self.assignment_changed(topic))
        elif (of := paths.partition_of(path)) is not None:
            self._reassigner.state_changed(rpc.TopicPartition(*of))

    def alter_isr(self, request: Request) -> None:
        self._isr_changes.asked(request)

    def obeyed(self, broker_id: int, command: Command, answer: object) -> None:
        if isinstance(command, rpc.StopReplicaRequest):
            if command.delete_partitions:
                self._replicas.answered(broker_id, command, answer)
            self._reassigner.obeyed(command)
            self._deletions.obeyed(broker_id, command, answer)


class PreferredLeaders:
    def __init__(self, context: Context, machines: StateMachines) -> None:
        self._context = context
        self._machines = machines
        every_ms = context.config.balance_interval_ms
        self.balancing = Periodic(
            context, every_ms, "balance", self.balance, is_wanted=lambda: bool(every_ms)
        )

    def asked(self) -> Procedure[None]:
        """Do what an administrator has asked for, and delete the node, unless somebody has written
        there since: that is the next event."""
        path = paths.PREFERRED_REPLICA_ELECTION
        yield from one(Exists(path=path, watch=True))
        found = yield from one(GetData(path=path))
        listed = decoded(found, PartitionList.decode)
        if listed is not None:
            yield from self._prefer(rpc.TopicPartition(*each) for each in listed.partitions)
        if isinstance(found, Data):
            yield from one(Delete(path=path, version=found.stat.version))

    def balance(self) -> Procedure[None]:
        """auto.leader.rebalance.enable."""
        yield from self._prefer(self._context.partitions())

    def _prefer(self, asked: Iterable[rpc.TopicPartition]) -> Procedure[None]:
        wanted = [of for of in asked if not self._context.is_deleting(of)]
        self._context.milestones.go_on(Cause(Occasion.ELECTION))
        yield from self._machines.change(wanted, self._preferred)

    def _preferred(
        self, of: rpc.TopicPartition, state: PartitionState | None
    ) -> PartitionState | None:
        replicas = self._context.replicas(of)
        if state is None or not replicas or state.leader == replicas[0]:
            return None
        after = partition_states.elected(state, self._context.live, Election.PREFERRED)
        return after if after is not None and after.leader == replicas[0] else None
