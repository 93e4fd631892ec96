"""The reassignment agent of `zk-v3`, and the nodes of single partitions that administrators write.

The agent wakes when a node changes, and every 30 s, and looks. Only then does it see that replicas
have caught up, since a leader tells nobody of its ISR. A reassignment is done when the ISR is
exactly the old replicas and the new ones: a replica that has died stops it for as long as it is
dead.

Beyond the document's text: where the leader is not among the new replicas, one of them is elected
in the same write, and all of them are told; F.3.2 says neither.

Source: seed 000, F; the paths are those that it has "created by admin".
"""

from collections.abc import Mapping
from dataclasses import dataclass

from controller.metadata.partitions import PartitionState
from controller.milestones import Cause, Occasion
from controller.zk import partition_states
from controller.zk.commands import Batch
from controller.zk.controller_context import Context, Move, Periodic
from controller.zk.zk_metadata import decoded, partitions_under, read_all, read_states
from quorum.zookeeper.zk_procedures import Procedure, one
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.session import ANY_VERSION, Delete, Error, Failed, GetData, SetData
from wire.zk.znodes import ReplicaList, TopicAssignment

__all__ = ["Listed", "ReassignmentAgent", "read_replicas", "remove", "write_assignment"]


@dataclass(slots=True, kw_only=True)
class Listed:
    """What the node of a partition lists."""

    replicas: tuple[int, ...]  # RAR, for the agent
    version: int  # of the node
    has_begun: bool = False  # the brokers of RAR were told


def read_replicas(design: Design, root: str) -> Procedure[dict[TopicPartition, Listed]]:
    """The partitions below `root` with the replicas that each lists, where it can be decoded."""
    named = yield from partitions_under(root)
    nodes = {of: paths.partition_under(root, of.topic, of.partition) for of in named}
    found = yield from read_all(design, nodes, ReplicaList.decode)
    return {
        of: Listed(replicas=listed.replicas, version=stat.version)
        for of, (listed, stat) in found.items()
        if listed.replicas
    }


def remove(root: str, of: TopicPartition, version: int = ANY_VERSION) -> Procedure[bool]:
    """Delete the node of the partition, and that of its topic if it was the last one.

    False: an administrator has written there since it was read.
    """
    path = paths.partition_under(root, of.topic, of.partition)
    removed = yield from one(Delete(path=path, version=version))
    yield from one(Delete(path=f"{root}/{of.topic}"))
    return not isinstance(removed, Failed) or removed.error is not Error.BAD_VERSION


def write_assignment(topic: str, partitions: Mapping[int, tuple[int, ...]]) -> Procedure[None]:
    data = TopicAssignment(partitions=partitions).encode()
    yield from one(SetData(path=paths.topic(topic), data=data))


class ReassignmentAgent:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._reassigned: dict[TopicPartition, Listed] = {}
        wake_ms = context.config.agent_wake_ms
        self.waking = Periodic(
            context,
            wake_ms,
            "agent wakes",
            self.on_wakeup,
            is_wanted=lambda: bool(self._reassigned),
        )

    def target(self, of: TopicPartition) -> tuple[int, ...]:
        known = self._reassigned.get(of)
        return () if known is None else known.replicas

    def read(self) -> Procedure[None]:
        """add_reassigned_partitions() for all partitions below the path."""
        found = yield from read_replicas(self._context.design, paths.PARTITIONS_REASSIGNED)
        for of, listed in found.items():
            self._reassigned.setdefault(of, listed)
        self._show()

    def on_partitions_reassigned(self) -> Procedure[None]:
        yield from self.read()
        for of in list(self._reassigned)[:1]:
            self._context.milestones.begin(
                Cause(Occasion.REASSIGNMENT, of.topic), heard=paths.PARTITIONS_REASSIGNED
            )
        yield from self.on_wakeup()

    def on_wakeup(self) -> Procedure[None]:
        for of, reassigned in sorted(self._reassigned.items(), key=lambda item: item[0]):
            self._context.milestones.go_on(Cause(Occasion.REASSIGNMENT, of.topic))
            if of.partition not in self._context.assignments.get(of.topic, {}):
                yield from self._forget(of)
            elif not reassigned.has_begun:
                yield from self._begin(of, reassigned)
            else:
                yield from self._end_if_caught_up(of, reassigned)

    def _begin(self, of: TopicPartition, reassigned: Listed) -> Procedure[None]:
        """Have the brokers of RAR fetch, as any follower does."""
        context = self._context
        states = yield from read_states(context.design, context.assignments, [of])
        if of not in states:
            return
        batch = Batch()
        batch.tell(reassigned.replicas, of, states[of])
        context.tell(batch)
        reassigned.has_begun = True

    def _end_if_caught_up(self, of: TopicPartition, reassigned: Listed) -> Procedure[None]:
        context, target = self._context, reassigned.replicas
        old = context.replicas(of)

        def decide(_of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
            if state is None or set(state.isr) != {*old, *target}:
                return None
            return partition_states.reassigned(state, target, context.live)

        written = yield from context.store.change([of], context.assignments, decide)
        if of not in written:
            return
        context.states[of] = written[of]
        batch = Batch()
        batch.tell((*target, written[of].leader), of, written[of])
        for broker_id in old:
            if broker_id not in target:
                batch.stop(broker_id, of, delete=True)
        context.tell(batch)
        context.assignments[of.topic] = {**context.assignments[of.topic], of.partition: target}
        yield from write_assignment(of.topic, context.assignments[of.topic])
        yield from self._forget(of)

    def _show(self) -> None:
        """Show the moves to clients that ask for them."""
        context = self._context
        context.moves = {
            of: Move(original=context.replicas(of), target=each.replicas)
            for of, each in self._reassigned.items()
            if context.replicas(of)
        }

    def _forget(self, of: TopicPartition) -> Procedure[None]:
        """A reassignment that an administrator has written there meanwhile begins next. A node that
        was deleted and created again may have the version that was read."""
        ended, root = self._reassigned.pop(of), paths.PARTITIONS_REASSIGNED
        self._show()
        found = yield from one(GetData(path=paths.partition_under(root, of.topic, of.partition)))
        listed = decoded(found, ReplicaList.decode)
        is_another = listed is not None and listed.replicas != ended.replicas
        if is_another or not (yield from remove(root, of, ended.version)):
            self._context.procedures.submit(
                "on_partitions_reassigned", self.on_partitions_reassigned
            )
