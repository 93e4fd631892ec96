"""A leader writes its ISR changes to ZooKeeper itself, at the version that it knows.

At another version the znode is another node's decision. The leader keeps the ISR that it had, and
tries again when it would have wanted the change anyway, with the version that it knows: only a
command of the controller brings a newer one. If none comes, it tries in vain for ever (KAFKA-2729),
as the document has it.

A write whose answer was lost may have been done. It then fails at its version, and the leader finds
its own ISR in the znode (KAFKA-1382). If another node has decided on top of it, the leader does not
find it; but the joining replica may be in sync now, and may be elected. A leader that has asked for
an expansion counts the joining replica until a command comes: records that it acknowledged without
that replica could be lost.

A change may be of an earlier leader epoch when its turn comes, or when its answer does: `IsrChange`
tells whether the partition still wants it. Nothing else is queued for the change that is wanted
since.

Source: seed 000, G; seed 001.
"""

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from broker.partition import isr
from broker.partition.isr import PendingExpand
from broker.partition.partition import IsrChange, Partition
from broker.zk.isr_notifications import IsrNotifications
from controller.milestones import Cause, Occasion, Step, milestone
from controller.zk.zk_metadata import decoded, state_path
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_procedures import Procedure, Procedures, one
from wire.message import replace
from wire.zk import znodes
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.session import Data, GetData, Result, SetData, Written

__all__ = ["IsrWrites", "tell_wanted", "tell_written"]


def tell_wanted(outbox: Outbox, node_id: int) -> None:
    cause = Cause(Occasion.ISR, node_id)
    outbox.emit(milestone(Step.DETECTED, cause))
    outbox.emit(milestone(Step.DECIDED, cause, count=1))


def tell_written(outbox: Outbox, node_id: int) -> None:
    cause = Cause(Occasion.ISR, node_id)
    outbox.emit(milestone(Step.PERSISTED, cause, count=1))
    outbox.emit(milestone(Step.APPLIED, cause, count=1, broker=node_id))


class IsrWrites:
    def __init__(
        self,
        *,
        design: Design,
        node_id: int,
        outbox: Outbox,
        procedures: Procedures,
        controller_epoch: Callable[[], int],
        now_ms: Callable[[], int],
        notifications: IsrNotifications | None,
    ) -> None:
        """`notifications`: None where nobody is told, as the controller reads before it decides."""
        self.decided: deque[Partition] = deque()
        self._design = design
        self._node_id = node_id
        self._outbox = outbox
        self._procedures = procedures
        self._controller_epoch = controller_epoch
        self._notifications = notifications
        self._now_ms = now_ms

    def want(self, change: IsrChange, now_ms: int) -> None:
        tell_wanted(self._outbox, self._node_id)
        if not self._submit(change.partition):
            self._give_up(change)

    def session_began(self, partitions: Iterable[Partition]) -> None:
        """The writes of the former session ended with it, and are still wanted. Whether they were
        done, only the node tells."""
        for partition in partitions:
            if partition.isr_wanted is not None:
                self._submit(partition)

    def tick(self, now_ms: int) -> None:
        """No write is due: a leader that still wants a change asks for it anew."""
        if self._notifications is not None:
            self._notifications.tick(now_ms)

    def deadline_ms(self) -> int | None:
        return None if self._notifications is None else self._notifications.deadline_ms()

    def _submit(self, partition: Partition) -> bool:
        return self._procedures.submit(f"isr of {partition.name}", partial(self._write, partition))

    def _write(self, partition: Partition) -> Procedure[None]:
        change = partition.isr_wanted
        if change is None:
            return
        of = TopicPartition(change.partition.topic, change.partition.index)
        path = state_path(self._design, of)
        wanted = znodes.PartitionState(
            leader=self._node_id,
            leader_epoch=change.role.leader_epoch,
            isr=isr.proposed_isr(change.asked),
            controller_epoch=self._controller_epoch(),
        )
        write = SetData(path=path, data=wanted.encode(), version=change.role.partition_epoch)
        result: Result = yield from one(write)
        if not isinstance(result, Written):
            result = yield from one(GetData(path=path))
            found = decoded(result, znodes.PartitionState.decode)
            if not isinstance(result, Data) or found is None or not _is_same(found, wanted):
                self._outbox.trace("isr-not-written", partition=change.partition.name)
                if found is None or not self._may_have_joined(change, found):
                    self._give_up(change)
                return
        if not change.end(wanted.isr):
            return
        change.role.partition_epoch = result.stat.version
        tell_written(self._outbox, self._node_id)
        if self._notifications is not None:
            self._notifications.changed(of, self._now_ms())
        self.decided.append(change.partition)

    def _may_have_joined(self, change: IsrChange, found: znodes.PartitionState) -> bool:
        """May a replica be in sync by a write of ours, on top of which others have written?"""
        if not isinstance(change.asked, PendingExpand):
            return False
        return change.asked.joining in found.isr or found.leader != self._node_id

    def _give_up(self, change: IsrChange) -> None:
        """It was not made: the ISR is what it was, or what a command will say."""
        if change.end(change.asked.members):
            self.decided.append(change.partition)


def _is_same(found: znodes.PartitionState, wanted: znodes.PartitionState) -> bool:
    """The controller epoch may have changed between the write and its repetition."""
    return replace(found, controller_epoch=wanted.controller_epoch) == wanted
