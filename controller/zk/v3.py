"""The controller of `zk-v3`: the procedures of seed 000, by the names that they have there.

Each partition is written by one synchronous call, and procedures run one after another: the order
of events is the "controller lock". The controller is not told when a leader changes its ISR, so it
reads before it decides. Reassignment has an agent of its own (`controller.zk.reassignment_agent`).

Controlled shutdown is not in the document, and docs/zookeeper-mode.md says so: seed 001 describes
it as what such a controller did later.
"""

from collections.abc import Collection, Iterable

from controller.metadata.election import Election
from controller.metadata.partitions import NO_LEADER, PartitionState
from controller.milestones import Cause, Occasion
from controller.zk import partition_states, reassignment_agent
from controller.zk.commands import Batch
from controller.zk.controller_context import Context, Duties
from controller.zk.reassignment_agent import ReassignmentAgent
from controller.zk.zk_metadata import children, partitions_under, read_assignments, read_states
from quorum.core.effects import Request
from quorum.zookeeper.zk_procedures import Procedure, one
from wire.zk import paths
from wire.zk.control_rpc import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    TopicPartition,
)
from wire.zk.session import Delete

__all__ = ["V3Duties"]


class V3Duties(Duties):
    def __init__(self, context: Context) -> None:
        self._context = context
        self._agent = ReassignmentAgent(context)
        self.timed = (self._agent.waking,)

    # --- D. controller failover ---------------------------------------------------------------

    def take_over(self) -> Procedure[None]:
        """on_controller_failover(), from its third step on."""
        context = self._context
        yield from context.read_live_brokers()
        names = yield from children(paths.TOPICS, watch=True)
        context.assignments = yield from read_assignments(context.design, names)
        context.states = yield from read_states(context.design, context.assignments)
        yield from self._agent.read()
        self._tell_init(context.live)
        yield from self.on_broker_change()
        without = [of for of in context.partitions() if of not in context.states]
        yield from self.init_leaders(without)
        yield from self._agent.on_wakeup()
        yield from self.on_partitions_add()
        yield from self.on_partitions_remove()

    def _tell_init(self, broker_ids: Collection[int]) -> None:
        """INIT: send each broker all that is its own, since it may have missed anything.

        A new broker may have read the nodes too early, or not at all, while it registered. What has
        moved away from it meanwhile is not named: there was no broker to send a StopReplica to.
        """
        context, batch = self._context, Batch(is_init=True)
        for broker_id in broker_ids:
            batch.leader_and_isr[broker_id] = {}  # also for a broker that has nothing
        for of, state in context.states.items():
            batch.tell([each for each in self._holders(of) if each in broker_ids], of, state)
        context.tell(batch)

    # --- A. broker failure --------------------------------------------------------------------

    def on_broker_change(self) -> Procedure[None]:
        context = self._context
        before = set(context.live)
        yield from context.read_live_brokers()
        context.notices_brokers(gone=before - set(context.live), new=set(context.live) - before)
        self._tell_init(set(context.live) - before)
        set_p = [of for of in context.partitions() if self._may_change(of)]
        how = Election.UNCLEAN if context.is_unclean_allowed else Election.ONLINE
        yield from self._change(set_p, how, without=())
        yield from self.init_leaders([of for of in set_p if of not in context.states])

    def _may_change(self, of: TopicPartition) -> bool:
        """Is a replica, or the leader, no longer live?"""
        context = self._context
        state = context.states.get(of)
        known = context.replicas(of) if state is None else (*context.replicas(of), *state.isr)
        return (
            state is None
            or state.leader not in context.live
            or any(broker_id not in context.live for broker_id in known)
        )

    def _change(
        self, set_p: Iterable[TopicPartition], how: Election, *, without: Iterable[int]
    ) -> Procedure[None]:
        """Elect where an election is needed, and send the result to the replicas."""
        context = self._context
        live = context.live.keys() - set(without)
        before: dict[TopicPartition, PartitionState] = {}

        def decide(of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
            if state is None:
                return None
            before[of] = state
            after = partition_states.elected(state, live, how)
            leaves = bool(without) and (after is None or after.leader == NO_LEADER)
            return None if leaves else after

        written = yield from context.store.change(set_p, context.assignments, decide)
        context.states |= before | written
        batch = Batch()
        for of, state in written.items():
            batch.tell(self._holders(of), of, state)
        context.tell(batch)

    def _holders(self, of: TopicPartition) -> tuple[int, ...]:
        """The brokers that are assigned, or will be."""
        return tuple(dict.fromkeys((*self._context.replicas(of), *self._agent.target(of))))

    # --- B. topics ----------------------------------------------------------------------------

    def on_topic_change(self) -> Procedure[None]:
        context = self._context
        names = set((yield from children(paths.TOPICS, watch=True)))
        new = sorted(names - context.assignments.keys())
        gone = sorted(context.assignments.keys() - names)
        for topic in new[:1]:
            context.milestones.begin(Cause(Occasion.TOPIC, topic), heard=paths.TOPICS)
        found = yield from read_assignments(context.design, new)
        context.assignments |= found
        yield from self.init_leaders(list(context.partitions(found)))
        self._stop(list(context.partitions(gone)))
        for topic in gone:
            del context.assignments[topic]

    def init_leaders(self, set_p: list[TopicPartition]) -> Procedure[None]:
        context = self._context
        if not set_p:
            return
        yield from context.read_live_brokers()
        known: dict[TopicPartition, PartitionState] = {}

        def decide(of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
            if state is not None:  # another controller was here before
                known[of] = state
                return None
            return partition_states.initial(context.replicas(of), context.live)

        written = yield from context.store.change(set_p, context.assignments, decide)
        context.states |= known | written
        batch = Batch()
        for of, state in written.items():
            batch.tell(context.replicas(of), of, state)
        context.tell(batch)

    def _stop(self, set_p: Iterable[TopicPartition]) -> None:
        """Send StopReplica, which removes the log, wherever a replica may be."""
        context = self._context
        batch = Batch()
        for of in set_p:
            state = context.states.pop(of, None)
            in_sync = () if state is None else state.isr  # whom a leader has taken back, too
            for broker_id in dict.fromkeys((*self._holders(of), *in_sync)):
                batch.stop(broker_id, of, delete=True)
        context.tell(batch)

    # --- partitions to add and to remove -------------------------------------------------------

    def on_partitions_add(self) -> Procedure[None]:
        context = self._context
        added = yield from reassignment_agent.read_replicas(context.design, paths.PARTITIONS_ADD)
        wanted = {
            of: each.replicas
            for of, each in added.items()
            if of.topic in context.assignments
            and not context.replicas(of)  # else it is there already
        }
        for of in list(wanted)[:1]:
            context.milestones.begin(Cause(Occasion.TOPIC, of.topic), heard=paths.PARTITIONS_ADD)
        for of, replicas in wanted.items():
            context.assignments[of.topic] = {
                **context.assignments[of.topic],
                of.partition: replicas,
            }
        yield from self.init_leaders(list(wanted))
        for of in added:
            yield from reassignment_agent.remove(paths.PARTITIONS_ADD, of)
        for topic in dict.fromkeys(of.topic for of in wanted):
            yield from reassignment_agent.write_assignment(topic, context.assignments[topic])

    def on_partitions_remove(self) -> Procedure[None]:
        context = self._context
        removed = yield from partitions_under(paths.PARTITIONS_REMOVE)
        self._stop(removed)
        for of in removed:
            yield from reassignment_agent.remove(paths.PARTITIONS_REMOVE, of)
        for topic in dict.fromkeys(of.topic for of in removed):
            if topic not in context.assignments:
                continue
            numbers = {of.partition for of in removed if of.topic == topic}
            kept = {n: each for n, each in context.assignments[topic].items() if n not in numbers}
            context.assignments[topic] = kept
            yield from reassignment_agent.write_assignment(topic, kept)
        for of in removed:  # the state would make a partition of the same number an old one
            yield from one(Delete(path=paths.partition_leader_and_isr(of.topic, of.partition)))

    # --- events -------------------------------------------------------------------------------

    def watch_fired(self, path: str) -> None:
        submit = self._context.procedures.submit
        if path == paths.BROKER_IDS:
            submit("on_broker_change", self.on_broker_change)
        elif path == paths.TOPICS:
            submit("on_topic_change", self.on_topic_change)
        elif path.startswith(paths.PARTITIONS_REASSIGNED):
            submit("on_partitions_reassigned", self._agent.on_partitions_reassigned)
        elif path.startswith(paths.PARTITIONS_ADD):
            submit("on_partitions_add", self.on_partitions_add)
        elif path.startswith(paths.PARTITIONS_REMOVE):
            submit("on_partitions_remove", self.on_partitions_remove)

    def controlled_shutdown(self, request: Request) -> Procedure[None]:
        """Elect cleanly only: the broker keeps what nobody else may lead, and is told so."""
        context = self._context
        body = request.body
        assert isinstance(body, ControlledShutdownRequest), body
        leaving = body.broker_id
        context.milestones.begin(Cause(Occasion.CONTROLLED_SHUTDOWN, leaving))
        set_p = [of for of in context.partitions() if leaving in context.replicas(of)]
        yield from self._change(set_p, Election.ONLINE, without=[leaving])
        context.reply(
            request, ControlledShutdownResponse(remaining=context.remaining(set_p, leaving))
        )
