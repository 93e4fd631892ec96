"""The controller of `zk-redesign`: ten protocols, each an event that one queue brings up.

An event reads what there is, decides for all partitions that it concerns, writes with all calls in
flight, and tells the brokers in one batch. What is where is explicit: the stages of partitions and
replicas (`controller.zk.states`). Deletion of topics is in `deletion.py`, reassignment in
`moving.py`, preferred leaders are in `preferring.py`.

Source: seed 001, "Protocols", "Current Design" and "Proposed Controller Improvements".
"""

from collections.abc import Callable, Iterable

from controller.metadata.znode_reading import (
    calls,
    children,
    decoded,
    read_assignments,
    read_states,
)
from controller.zk.alter_isr import IsrChanges
from controller.zk.deletion import Deletions
from controller.zk.desk import Desk
from controller.zk.moving import Moving
from controller.zk.notify import Batch
from controller.zk.notify import Request as Command
from controller.zk.preferring import Preferring
from controller.zk.stage import Stage
from quorum.core.effects import Reply, Request, earliest
from quorum.core.milestones import Cause, Occasion
from quorum.zookeeper.zk_procedures import Procedure
from wire.errors import ErrorCode
from wire.zk import paths
from wire.zk.control_rpc import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    StopReplicaRequest,
    TopicPartition,
)
from wire.zk.designs import IsrWriter
from wire.zk.session import Delete, GetData
from wire.zk.znodes import PartitionList

__all__ = ["RedesignDuties"]


class RedesignDuties:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._stage = Stage(desk)
        self._deletions = Deletions(desk, self._stage)
        self._moving = Moving(desk, self._stage, is_deleted=self._deletions.concerns)
        self._isr_changes = IsrChanges(desk, self._stage, is_deleted=self._deletions.concerns)
        self._preferring = Preferring(desk, self._stage, is_deleted=self._deletions.concerns)
        # An event begins anew when the connection has gone meanwhile; what it noticed is kept.
        self._dealt_with: dict[int, int] = {}  # generations of brokers
        self._unborn: dict[TopicPartition, None] = {}

    # --- controller leader election -----------------------------------------------------------

    def take_over(self) -> Procedure[None]:
        """Register watches, load what there is, go on with what was under way, tell everybody."""
        desk = self._desk
        yield from desk.read_live_brokers()
        self._dealt_with = self._lives()
        names = yield from children(paths.TOPICS, watch=True)
        desk.assignments = yield from read_assignments(desk.design, names, watch=True)
        desk.states = yield from read_states(desk.design, desk.assignments)
        self._stage.begin()
        self._tell_everything(desk.live)
        yield from self._stage.elect_offline(but=self._deletions.concerns)
        yield from self._stage.elect(self._with_dead_members())
        if desk.design.isr_writer is IsrWriter.LEADER_NOTIFYING:
            yield from self.isr_changed()
        yield from self.topics_to_delete()
        yield from self._moving.asked()
        yield from self._preferring.asked()

    def _with_dead_members(self) -> list[TopicPartition]:
        """Finds the brokers that died while there was no controller: mostly the one before us."""
        desk = self._desk
        return [of for of in desk.partitions() if self._has_dead_member(of)]

    def _has_dead_member(self, of: TopicPartition) -> bool:
        state = self._desk.states.get(of)
        return (
            state is not None
            and not self._deletions.concerns(of)
            and not self._desk.live.keys() >= set(state.isr)
        )

    def _tell_everything(self, broker_ids: Iterable[int]) -> None:
        """What they have to hold, and nothing else: who was away while a partition moved from it,
        or a move to it was cancelled, has the log still."""
        desk, batch = self._desk, Batch(is_full=True, is_init=True)
        asked = set(broker_ids)
        for broker_id in asked:
            batch.leader_and_isr[broker_id] = {}  # also of one that has nothing
        for of, state in desk.states.items():
            if not self._deletions.concerns(of):  # who has deleted it must not begin anew
                batch.tell(asked.intersection(desk.replicas(of)), of, state)
        batch.metadata |= {of: self._deletions.shown(of) for of in desk.states}
        batch.update(asked)
        desk.tell(batch)

    # --- broker join, broker failure ----------------------------------------------------------

    def brokers_changed(self) -> Procedure[None]:
        """A broker that left and came back between two looks is both, by its generation; where the
        design knows none, it was never away."""
        before = self._dealt_with
        yield from self._desk.read_live_brokers()
        after = self._lives()
        dead = sorted(each for each in before if after.get(each) != before[each])
        new = sorted(each for each in after if before.get(each) != after[each])
        self._desk.notices_brokers(gone=dead, new=new)
        if dead:
            yield from self._broker_failed(dead)
        if new:
            yield from self._broker_joined(new)
        self._dealt_with = after

    def _lives(self) -> dict[int, int]:
        desk = self._desk
        knows = desk.design.checks_generation
        return {each.id: each.generation if knows else 0 for each in desk.live.values()}

    def _broker_failed(self, dead: list[int]) -> Procedure[None]:
        desk = self._desk
        concerned = [
            of
            for of in desk.partitions()
            if not set(dead).isdisjoint(desk.replicas(of)) and not self._deletions.concerns(of)
        ]
        self._stage.brokers_down(dead)
        yield from self._stage.elect(concerned, without=dead)
        self._deletions.brokers_down(dead)
        batch = Batch()
        batch.update(desk.live)
        desk.tell(batch)

    def _broker_joined(self, new: list[int]) -> Procedure[None]:
        desk = self._desk
        self._stage.brokers_up(new)
        others = Batch()
        others.update(desk.live.keys() - set(new))
        desk.tell(others)
        self._tell_everything(new)
        yield from self._stage.elect_offline(but=self._deletions.concerns)
        yield from self._moving.look()
        yield from self._deletions.go_on()

    # --- topics -------------------------------------------------------------------------------

    def topics_changed(self) -> Procedure[None]:
        desk = self._desk
        names = set((yield from children(paths.TOPICS, watch=True)))
        gone = desk.assignments.keys() - names
        for topic in sorted(gone):
            self._stage.forget(topic)
        new = sorted(names - desk.assignments.keys())
        for topic in new[:1]:
            desk.milestones.begin(Cause(Occasion.TOPIC, topic), heard=paths.TOPICS)
        found = yield from read_assignments(desk.design, new, watch=True)
        desk.assignments |= found
        yield from self._create(desk.partitions(found))
        if not self._deletions.awaited.isdisjoint(found):
            yield from self._deletions.asked()

    def _create(self, partitions: Iterable[TopicPartition]) -> Procedure[None]:
        self._unborn |= dict.fromkeys(partitions)
        yield from self._stage.create(list(self._unborn))
        self._unborn.clear()

    def assignment_changed(self, topic: str) -> Procedure[None]:
        """Partition expansion; what the controller has written itself is known already."""
        desk = self._desk
        found = yield from read_assignments(desk.design, [topic], watch=True)
        if topic not in found or topic not in desk.assignments or self._deletions.ends(topic):
            return
        known = desk.assignments[topic]
        added = {number: each for number, each in found[topic].items() if number not in known}
        if added:
            desk.milestones.begin(Cause(Occasion.TOPIC, topic), heard=paths.topic(topic))
        desk.assignments[topic] = {**known, **added}
        yield from self._create(TopicPartition(topic, number) for number in sorted(added))

    def topics_to_delete(self) -> Procedure[None]:
        yield from self._deletions.asked()

    # --- what leaders tell, and brokers that leave --------------------------------------------

    def isr_changed(self) -> Procedure[None]:
        """/isr_change_notification: read again what leaders have written, and tell everybody."""
        desk = self._desk
        names = yield from children(paths.ISR_CHANGES, watch=True)
        notes = [f"{paths.ISR_CHANGES}/{name}" for name in names]
        found = yield from calls(desk.design, (GetData(path=path) for path in notes))
        listed = [each for result in found if (each := decoded(result, PartitionList.decode))]
        if listed:
            desk.milestones.begin(Cause(Occasion.ISR), heard=paths.ISR_CHANGES)
        asked = {TopicPartition(*each) for one_note in listed for each in one_note.partitions}
        known = sorted(of for of in asked if desk.replicas(of) and not self._deletions.concerns(of))
        states = yield from read_states(desk.design, desk.assignments, known)
        desk.states |= states
        batch = Batch(metadata=dict(states))
        if states:
            batch.update(desk.live)
        desk.tell(batch)
        yield from calls(desk.design, (Delete(path=path) for path in notes))
        yield from self._moving.look()

    def controlled_shutdown(self, request: Request) -> Procedure[None]:
        desk = self._desk
        body = request.body
        assert isinstance(body, ControlledShutdownRequest), body
        leaving = body.broker_id
        if desk.design.checks_generation and self._lives().get(leaving) != body.broker_generation:
            refused = ControlledShutdownResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
            desk.outbox.emit(Reply(token=request.token, body=refused))
            return
        desk.milestones.begin(Cause(Occasion.CONTROLLED_SHUTDOWN, leaving))
        concerned = [
            of
            for of in desk.partitions()
            if leaving in desk.replicas(of) and not self._deletions.concerns(of)
        ]
        yield from self._stage.elect(concerned, without=[leaving], is_orderly=True)
        led = [
            of
            for of in concerned
            if (state := desk.states.get(of)) is not None and state.leader == leaving
        ]
        batch = Batch()
        for of in concerned:
            if of not in led:
                batch.stop(leaving, of, delete=False)
        desk.tell(batch)
        if not desk.design.batches_commands:
            desk.tell(batch)  # KafkaController and ReplicaStateMachine: each has a batch of its own
        answer = ControlledShutdownResponse(remaining=tuple(led))
        desk.outbox.emit(Reply(token=request.token, body=answer))

    # --- events -------------------------------------------------------------------------------

    def watch_fired(self, path: str) -> None:
        submit = self._desk.procedures.submit
        events: dict[str, Callable[[], Procedure[None]]] = {
            paths.BROKER_IDS: self.brokers_changed,
            paths.TOPICS: self.topics_changed,
            paths.DELETE_TOPICS: self.topics_to_delete,
            paths.REASSIGN_PARTITIONS: self._moving.asked,
            paths.PREFERRED_REPLICA_ELECTION: self._preferring.asked,
            paths.ISR_CHANGES: self.isr_changed,
        }
        if path in events:
            submit(path, events[path])
        elif paths.parent(path) == paths.TOPICS:
            topic = paths.last_name(path)
            submit(path, lambda: self.assignment_changed(topic))
        elif paths.partition_of(path) is not None:
            submit("reassigned partitions", self._moving.look)

    def alter_isr(self, request: Request) -> None:
        self._isr_changes.asked(request)

    def obeyed(self, broker_id: int, command: Command, answer: object) -> None:
        if isinstance(command, StopReplicaRequest) and command.delete_partitions:
            self._deletions.obeyed(broker_id, command, answer)

    def tick(self, now_ms: int) -> None:
        self._deletions.tick(now_ms)
        self._isr_changes.tick(now_ms)
        self._preferring.tick(now_ms)

    def deadline_ms(self) -> int | None:
        parts = (self._preferring, self._deletions, self._isr_changes)
        return earliest(*(part.deadline_ms() for part in parts))
