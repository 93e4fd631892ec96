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

The controller hears of a change by sequential children of /isr_change_notification. A leader
collects the partitions whose ISR it has written, and looks every 2.5 s. It notifies the controller
when nothing has changed for 5 s, or when the first change has waited for 60 s. So it takes seconds,
and up to a minute, until the controller knows: KIP-497 was written for that.

Source: seed 000, G; seed 001, IsrChangeNotificationListener; seed 003, motivation; ReplicaManager's
constants.
"""

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from broker.partition import isr
from broker.partition.isr import PendingExpand
from broker.partition.partition import IsrChange, Partition
from controller.milestones import Cause, Occasion, Step, milestone
from controller.zk.zk_metadata import decoded, state_path
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_procedures import Procedure, Procedures, one
from wire.message import replace
from wire.zk import paths, znodes
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.session import Create, Created, Data, GetData, Result, SetData, Written
from wire.zk.znodes import PartitionList

__all__ = ["IsrNotifications", "IsrWrites", "tell_wanted", "tell_written"]


def tell_wanted(outbox: Outbox, node_id: int) -> None:
    cause = Cause(Occasion.ISR, node_id)
    outbox.emit(milestone(Step.DETECTED, cause))
    outbox.emit(milestone(Step.DECIDED, cause, count=1))


def tell_written(outbox: Outbox, node_id: int) -> None:
    cause = Cause(Occasion.ISR, node_id)
    outbox.emit(milestone(Step.PERSISTED, cause, count=1))
    outbox.emit(milestone(Step.APPLIED, cause, count=1, broker=node_id))


CHECK_MS = 2500
LINGER_MS = 5000
WAIT_MAX_MS = 60_000


class IsrWrites:
    """`changed` hears of each ISR that has become true."""

    def __init__(
        self,
        *,
        design: Design,
        node_id: int,
        outbox: Outbox,
        procedures: Procedures,
        controller_epoch: Callable[[], int],
        changed: Callable[[TopicPartition], None],
    ) -> None:
        self.decided: deque[Partition] = deque()
        self._design = design
        self._node_id = node_id
        self._outbox = outbox
        self._procedures = procedures
        self._controller_epoch = controller_epoch
        self._changed = changed

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
        """Nothing is due: a leader that still wants a change asks for it anew."""

    def deadline_ms(self) -> int | None:
        return None

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
        self._changed(of)
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


class IsrNotifications:
    def __init__(self, procedures: Procedures) -> None:
        self._procedures = procedures
        self._changed: dict[TopicPartition, int] = {}  # by which change it did last
        self._changes = 0
        self._last_change_ms = 0
        self._first_change_ms = 0
        self._next_check_ms: int | None = None

    def changed(self, of: TopicPartition, now_ms: int) -> None:
        if not self._changed:
            self._first_change_ms = now_ms
        self._changes += 1
        self._changed[of] = self._changes
        self._last_change_ms = now_ms
        if self._next_check_ms is None:
            self._next_check_ms = now_ms + CHECK_MS

    def tick(self, now_ms: int) -> None:
        if self._next_check_ms is None or now_ms < self._next_check_ms:
            return
        self._next_check_ms = now_ms + CHECK_MS
        is_quiet = now_ms - self._last_change_ms >= LINGER_MS
        if is_quiet or now_ms - self._first_change_ms >= WAIT_MAX_MS:
            self._procedures.submit("isr notification", self._tell)

    def deadline_ms(self) -> int | None:
        return self._next_check_ms

    def _tell(self) -> Procedure[None]:
        """Partitions of a notification that the end of a session prevents are named by a later one,
        and so are those that change meanwhile."""
        listed = tuple((of.topic, of.partition) for of in self._changed)
        if not listed:
            return
        told = self._changes
        data = PartitionList(partitions=listed).encode()
        created = yield from one(
            Create(path=paths.isr_changes_prefix(), data=data, is_sequential=True)
        )
        if isinstance(created, Created):
            self._changed = {of: change for of, change in self._changed.items() if change > told}
            if not self._changed:
                self._next_check_ms = None
