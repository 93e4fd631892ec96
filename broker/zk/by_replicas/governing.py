"""A leader alone runs its partition's state machine: it reassigns, balances and removes.

An administrator moves a partition by writing its new replicas (RAR) to
`/brokers/partitions_reassigned/[topic]/[partition_id]`. The leader has the new replicas start,
waits until they have caught up, has the old ones close, waits until they no longer fetch (if that
takes too long, it says so and tells them again), and switches over. An empty list removes the
partition. Every leader begins the state machine anew, from what ZooKeeper says, so every step may
be done twice.

The document's commit thread looks at all this after each request that it commits, and says that it
may as well do so periodically: so it is here. Its last step, "stop this commit thread", is done
first: while the leader's node is being deleted, nobody commits.

`zk-v1` has no queues: the replicas read for themselves what they have to be.

Source: seed 002; the removal of nodes and the order of it are reconstructed.
"""

from broker.partition.isr import Committed
from broker.partition.partition import LeaderOf, Partition
from broker.zk.by_replicas.held import Held, ReplicaContext
from broker.zk.by_replicas.held_replicas import Assigned, ReplicaRoles
from broker.zk.by_replicas.leader_changes import LeaderChanges
from broker.zk.by_replicas.partition_nodes import PartitionNodes
from broker.zk.by_replicas.state_queue import send_state_change
from controller.zk.zk_metadata import decoded, partitions_under, readable, write_over
from quorum.zookeeper.zk_procedures import Procedure, one, one_by_one
from wire.message import replace
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.session import Data, Delete, Error, Exists, Failed, Found, GetData
from wire.zk.znodes import ReplicaList, StateChange, StateChangeKind, TopicAssignment

__all__ = ["Governing"]

_ROOT = paths.V2_PARTITIONS_REASSIGNED
START, CLOSE = StateChangeKind.START_REPLICA, StateChangeKind.CLOSE_REPLICA


class Governing:
    def __init__(
        self,
        context: ReplicaContext,
        *,
        roles: ReplicaRoles,
        changes: LeaderChanges,
        assigned: Assigned,
    ) -> None:
        self._design = context.design
        self._settings = context.settings
        self._node_id = context.node_id
        self._outbox = context.outbox
        self._procedures = context.procedures
        self._held = context.held
        self._nodes = PartitionNodes(context.design)
        self._roles = roles
        self._changes = changes
        self._assigned = assigned
        self._again: dict[TopicPartition, None] = {}  # a queue was full
        self._checked_ms = 0  # when this round of checks began
        self._has_given_way = False  # for the sake of balance, in this round of checks
        self._moving: set[TopicPartition] = set()  # as last read

    # --- reassignment -------------------------------------------------------------------------

    def on_partitions_reassigned(self) -> Procedure[None]:
        named = yield from partitions_under(_ROOT)
        for of, held in list(self._held.items()):
            if held.target is not None and of not in named:  # withdrawn
                self._withdraw(held)
        ended = self._moving.difference(named)
        self._moving = set(named)
        for of in sorted(ended):
            yield from self._on_reassignment_ended(of)
        for of in named:
            yield from self.on_partition_reassigned(of)

    def _on_reassignment_ended(self, of: TopicPartition) -> Procedure[None]:
        """Who was away when it was told to close, and came back while the partition was still
        assigned to it, has begun anew."""
        if of not in self._held or self._roles.leads(of):
            return
        replicas = yield from self._nodes.replicas(of)
        if replicas and self._node_id not in replicas:
            self._assigned.let_go(of, self._procedures.now_ms)

    def _withdraw(self, held: Held) -> None:
        """The leader moves the partition back to where it is, so the replicas that were started
        close."""
        if self._roles.leads(held.of):
            held.move_to(held.replicas)
            held.target_version = None
        else:
            held.stay()

    def on_partition_reassigned(self, of: TopicPartition) -> Procedure[None]:
        path = paths.partition_under(_ROOT, of.topic, of.partition)
        found = yield from one(GetData(path=path, watch=True))
        listed = decoded(found, ReplicaList.decode)
        if listed is None or not isinstance(found, Data):
            return
        if self._node_id in listed.replicas:  # our replica was told so, or finds out here
            self._assigned.hold(of)
        held = self._held.get(of)
        led = self._roles.led(of)
        if held is None or led is None:
            if not listed.replicas:
                yield from self._finish_removal(of, found.stat.version)
            return
        held.target_version = found.stat.version
        if not listed.replicas:
            yield from self._remove(held)
            return
        held.replicas = yield from self._nodes.replicas(of)
        if held.target != listed.replicas:
            held.move_to(listed.replicas)
        new = [each for each in listed.replicas if each not in held.replicas]
        yield from self._send_all(held, START, new)
        self._roles.lead(held, self._procedures.now_ms)  # they may follow now

    def begin_checks(self, now_ms: int) -> None:
        """Begins a round of checks of all partitions that are led."""
        self._has_given_way = False
        self._checked_ms = now_ms

    def check(self, of: TopicPartition) -> Procedure[None]:
        """The work of the commit thread beside committing."""
        held, led = self._held.get(of), self._roles.led(of)
        if held is None or led is None:
            return
        if of in self._again:
            del self._again[of]
            yield from self.on_partition_reassigned(of)
        elif held.target is not None:
            yield from self._check_reassigned_replicas(held, held.target, *led)
        elif not self._design.has_leader_epochs and _is_overwritten(held, led[1]):
            yield from self._nodes.write_isr(held, led[1].isr.members)
        elif self._design.has_preferred_leaders:
            yield from self._check_load_balancing(held, *led)

    def _check_reassigned_replicas(
        self, held: Held, target: tuple[int, ...], partition: Partition, role: LeaderOf
    ) -> Procedure[None]:
        """Have all reassigned replicas caught up, and the older ones stopped fetching?"""
        if not all(self._has_caught_up(each, partition, role) for each in target):
            return
        old = [each for each in held.old if each != self._node_id]
        if not self._design.has_state_queues:
            yield from self._complete_partition_reassignment(held, target, role)
        elif held.close_sent_ms is None:
            yield from self._close_replicas(held, old)
        elif left := [each for each in old if each in role.isr.members]:
            if self._checked_ms - held.close_sent_ms > self._settings.close_wait_ms:
                self._outbox.trace("replicas-not-closed", partition=str(held.of), brokers=left)
                yield from self._close_replicas(held, left)
        else:
            yield from self._complete_partition_reassignment(held, target, role)

    def _close_replicas(self, held: Held, old: list[int]) -> Procedure[None]:
        """They are waited for, or it is an error, and they are told again."""
        if (yield from self._send_all(held, CLOSE, old)):
            held.close_sent_ms = self._checked_ms

    def _has_caught_up(self, broker_id: int, partition: Partition, role: LeaderOf) -> bool:
        """Is the replica in sync, as a member of CUR was before it joined?"""
        if broker_id == self._node_id:
            return True
        follower = role.followers.get(broker_id)
        offset = max(partition.open_log.high_watermark, role.epoch_start_offset)
        is_in_sync = broker_id in role.isr.members
        return follower is not None and is_in_sync and follower.log_end_offset >= offset

    def _complete_partition_reassignment(
        self, held: Held, target: tuple[int, ...], role: LeaderOf
    ) -> Procedure[None]:
        """completePartitionsReassignment(RAR, ISR, AR, stopCommitThread)"""
        members = role.isr.members if self._design.has_state_queues else ()
        isr = tuple(dict.fromkeys((*members, *target)))  # "in case we fail right after here"
        is_done = (yield from self._nodes.write_isr(held, isr)) and (
            yield from self._nodes.write_replicas(held, target)
        )
        if not is_done:
            self._changes.look_again(held.of, self._procedures.now_ms)
            return
        held.replicas, version = target, held.target_version
        held.stay()
        is_leaving = self._node_id not in target
        if is_leaving:
            yield from self._send_all(held, CLOSE, [self._node_id])
        yield from self._forget_reassignment(held.of, version)
        self._outbox.trace("reassigned", partition=str(held.of), replicas=target)
        if is_leaving or self._node_id != target[0]:
            yield from self._resign(held)
        else:
            self._roles.lead(held, self._procedures.now_ms)

    def _forget_reassignment(self, of: TopicPartition, version: int | None) -> Procedure[None]:
        """Delete the node that asked for it, unless an administrator has written there since: that
        is read next."""
        if version is None:
            return
        path = paths.partition_under(_ROOT, of.topic, of.partition)
        deleted = yield from one(Delete(path=path, version=version))
        if isinstance(deleted, Failed) and deleted.error is Error.BAD_VERSION:
            self._again[of] = None
        yield from one(Delete(path=f"{_ROOT}/{of.topic}"))  # if it was the last of its topic

    # --- balancing ----------------------------------------------------------------------------

    def _check_load_balancing(
        self, held: Held, partition: Partition, role: LeaderOf
    ) -> Procedure[None]:
        """Give way to the preferred replica, if it is in the ISR: and fetches, since a broker that
        has died stays there until somebody writes.

        For one partition in a round: elections wait for each other. With many at once the preferred
        replica comes to some too late, others win them, and have to give way in their turn.
        """
        preferred = held.replicas[0] if held.replicas else self._node_id
        follower = role.followers.get(preferred)
        if self._has_given_way or follower is None or preferred not in role.isr.members:
            return
        silent_ms = self._checked_ms - follower.last_fetch_ms
        has_all = follower.log_end_offset >= partition.open_log.high_watermark
        if has_all and silent_ms <= self._settings.check_interval_ms:
            self._has_given_way = True
            yield from self._resign(held)

    def _resign(self, held: Held) -> Procedure[None]:
        """Delete the leader's node: "triggers leader election"."""
        self._roles.rest(held, self._procedures.now_ms)
        if not (yield from self._nodes.resign(held)):
            self._changes.look_again(held.of, self._procedures.now_ms)

    # --- removal ------------------------------------------------------------------------------

    def _remove(self, held: Held) -> Procedure[None]:
        """RAR is empty. A leader that comes after us finds it so, and does the same.

        Who closes its own replica must be sure to lead: it could not stand for it again.
        """
        of = held.of
        leads = yield from self._nodes.leader(of)
        if leads is None or leads.zxid != held.leader_zxid:
            self._changes.look_again(of, self._procedures.now_ms)
            return
        held.replicas = yield from self._nodes.replicas(of)
        everybody = dict.fromkeys((*held.members, *held.dropped))
        if not (yield from self._send_all(held, CLOSE, list(everybody))):
            return
        left = yield from self._remove_from_topic(of)
        if not (yield from self._nodes.remove(held)):
            self._changes.look_again(of, self._procedures.now_ms)
            return
        if not left:
            yield from one(Delete(path=paths.topic(of.topic)))
        yield from self._forget_reassignment(of, held.target_version)
        self._outbox.trace("partition-deleted", partition=str(of))

    def _finish_removal(self, of: TopicPartition, version: int) -> Procedure[None]:
        """Finishes a removal amid which a leader died: the topic has the partition no more, and no
        replica stands for what all have closed."""
        found = yield from one(GetData(path=paths.topic(of.topic)))
        assignment = decoded(found, TopicAssignment.decode)
        if assignment is not None and of.partition in assignment.partitions:
            return
        leader = paths.partition_leader(of.topic, of.partition)
        if isinstance((yield from one(Exists(path=leader))), Found):
            return
        left = (paths.partition_isr, paths.partition_replicas)
        yield from one_by_one(Delete(path=path(of.topic, of.partition)) for path in left)
        yield from one(Delete(path=paths.parent(leader)))
        if assignment is not None and not assignment.partitions:
            yield from one(Delete(path=paths.topic(of.topic)))
        yield from self._forget_reassignment(of, version)

    def _remove_from_topic(self, of: TopicPartition) -> Procedure[int]:
        """Remove the partition from its topic, so that nobody creates it again. Returns how many
        are left."""
        kept: dict[int, tuple[int, ...]] | None = None  # None: there is no such topic

        def without(data: bytes | None) -> bytes | None:
            nonlocal kept
            assignment = readable(data, TopicAssignment.decode)
            if assignment is None:
                kept = None
                return None
            kept = {n: each for n, each in assignment.partitions.items() if n != of.partition}
            return replace(assignment, partitions=kept).encode()

        is_written = yield from write_over(paths.topic(of.topic), without)
        return len(kept or ()) if is_written or kept is None else -1

    # --- queues -------------------------------------------------------------------------------

    def _send_all(
        self, held: Held, kind: StateChangeKind, broker_ids: list[int]
    ) -> Procedure[bool]:
        """To each of them, to ourselves last: who has closed its replica cannot go on.

        False: a queue was full, and it is tried again.
        """
        if not self._design.has_state_queues:
            return True
        request = StateChange(
            kind=kind,
            topic=held.of.topic,
            partition=held.of.partition,
            leader_epoch=held.leader_epoch,
        )
        for broker_id in sorted(broker_ids, key=lambda each: each == self._node_id):
            full = yield from send_state_change(
                broker_id, request, queue_max=self._settings.queue_max
            )
            if full is not None:
                self._outbox.trace("state-queue-full", broker=broker_id, request=kind.value)
                self._again[held.of] = None
                return False
        return True


def _is_overwritten(held: Held, role: LeaderOf) -> bool:
    """Has a leader before us written the ISR since, which had not heard of us?

    Without epochs nothing keeps it from that (seed 004).
    """
    return isinstance(role.isr, Committed) and {*held.isr} != {*role.isr.members}
