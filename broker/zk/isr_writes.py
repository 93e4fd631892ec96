"""The leader's ISR changes, written to ZooKeeper by itself: conditionally, at the version it has.

At any other version the znode is somebody else's decision. The leader keeps the ISR that it had and
tries again when it would have wanted the change anyway, with the version that it knows: nothing but
a command of the controller tells it a newer one. If none comes, it tries in vain for ever
(KAFKA-2729): the document has it so.

A write whose answer was lost may have been done: it fails at its version then, and finds itself in
the znode (KAFKA-1382). If somebody has decided on it since, it does not; but whoever was to join
may be in sync now, and may be elected. A leader that has asked for an expansion counts such a
member until a command comes: what it acknowledged without it could be lost.

The controller hears of it by sequential children of /isr_change_notification. A leader collects the
partitions whose ISR it has written, and looks every 2.5 s: it tells when nothing has changed for 5
s, or when the first of them has waited for 60 s. So it takes seconds, and up to a minute, until the
controller knows: KIP-497 was written for that.

Source: seed 000, G; seed 001, IsrChangeNotificationListener; seed 003, motivation; ReplicaManager's
constants.
"""

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from broker import isr
from broker.isr import Committed, PendingExpand, PendingShrink
from broker.outbox import Outbox
from broker.partition import LeaderOf, Partition
from broker.zk.isr_wish import Wish, tell_wanted, tell_written
from controller.metadata.znode_reading import decoded, state_path
from quorum.zookeeper.zk_procedures import Procedure, Procedures, one
from wire.message import replace
from wire.zk import paths, znodes
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.session import Create, Created, Data, GetData, Result, SetData, Written
from wire.zk.znodes import PartitionList

__all__ = ["IsrNotifications", "IsrWrites"]

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

    def want(self, partition: Partition, role: LeaderOf, now_ms: int) -> None:
        assert isinstance(role.isr, PendingExpand | PendingShrink), role.isr
        tell_wanted(self._outbox, self._node_id)
        if not self._submit(partition):
            self._give_up(Wish(partition=partition, role=role, asked=role.isr))

    def session_began(self, partitions: Iterable[Partition]) -> None:
        """What was to be written ended with the session before it, and is wanted all the same. Done
        or not: only a second look at the node tells."""
        for partition in partitions:
            if Wish.of(partition) is not None:
                self._submit(partition)

    def tick(self, now_ms: int) -> None:
        """Nothing is due: a leader that still wants a change asks for it anew."""

    def deadline_ms(self) -> int | None:
        return None

    def _submit(self, partition: Partition) -> bool:
        return self._procedures.submit(f"isr of {partition.name}", partial(self._write, partition))

    def _write(self, partition: Partition) -> Procedure[None]:
        wish = Wish.of(partition)
        if wish is None:
            return
        of = TopicPartition(wish.partition.topic, wish.partition.index)
        path = state_path(self._design, of)
        wanted = znodes.PartitionState(
            leader=self._node_id,
            leader_epoch=wish.role.leader_epoch,
            isr=isr.proposed_isr(wish.asked),
            controller_epoch=self._controller_epoch(),
        )
        write = SetData(path=path, data=wanted.encode(), version=wish.role.partition_epoch)
        result: Result = yield from one(write)
        if not isinstance(result, Written):
            result = yield from one(GetData(path=path))
            found = decoded(result, znodes.PartitionState.decode)
            if not isinstance(result, Data) or found is None or not _is_same(found, wanted):
                self._outbox.trace("isr-not-written", partition=wish.partition.name)
                if found is None or not self._may_have_joined(wish, found):
                    self._give_up(wish)
                return
        if not wish.is_wanted:
            return
        wish.role.isr = Committed(members=wanted.isr)
        wish.role.partition_epoch = result.stat.version
        tell_written(self._outbox, self._node_id)
        self._changed(of)
        self.decided.append(wish.partition)

    def _may_have_joined(self, wish: Wish, found: znodes.PartitionState) -> bool:
        """Is somebody in sync by a write of ours that others have built on?"""
        if not isinstance(wish.asked, PendingExpand):
            return False
        return wish.asked.joining in found.isr or found.leader != self._node_id

    def _give_up(self, wish: Wish) -> None:
        """Not made: the ISR is what it was, or what a command will say."""
        if wish.is_wanted:
            wish.role.isr = Committed(members=wish.asked.members)
            self.decided.append(wish.partition)


def _is_same(found: znodes.PartitionState, wanted: znodes.PartitionState) -> bool:
    """Another controller may have been heard of between the write and its repetition."""
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
        """What is not told, since the session has ended, is told at a later look; so is what has
        changed while this was on its way."""
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
