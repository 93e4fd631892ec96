"""The leader's changes of the ISR: "write p.ISR to ZK".

Held until the write is done, as in every design: `broker.isr`. A write that fails says that another
leads, or will in a moment: then we look who. Until that is known the change stays wanted: one whose
answer was lost may have been made, so that who was to join counts.

Source: seed 002, the commit thread.
"""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

from broker import isr
from broker.isr import Committed, PendingExpand, PendingShrink
from broker.outbox import Outbox
from broker.partition import LeaderOf, Partition
from broker.zk.by_replicas.held import Held
from broker.zk.by_replicas.partition_nodes import PartitionNodes
from broker.zk.isr_wish import Wish, tell_wanted, tell_written
from quorum.zookeeper.zk_procedures import Procedure, Procedures
from wire.zk.control_rpc import TopicPartition

__all__ = ["IsrNode"]


class IsrNode:
    """`failed` hears if another leads."""

    def __init__(
        self,
        *,
        outbox: Outbox,
        procedures: Procedures,
        nodes: PartitionNodes,
        held: Mapping[TopicPartition, Held],
        failed: Callable[[TopicPartition], None],
    ) -> None:
        self.decided: deque[Partition] = deque()
        self._outbox = outbox
        self._procedures = procedures
        self._nodes = nodes
        self._held = held
        self._failed = failed

    def want(self, partition: Partition, role: LeaderOf, now_ms: int) -> None:
        assert isinstance(role.isr, PendingExpand | PendingShrink), role.isr
        tell_wanted(self._outbox, partition.node_id)
        if not self._procedures.submit(f"isr of {partition.name}", partial(self._write, partition)):
            wish = Wish(partition=partition, role=role, asked=role.isr)
            self._settle(wish, wish.asked.members)

    def tick(self, now_ms: int) -> None:
        """Nothing is due: a leader that still wants a change asks for it anew."""

    def deadline_ms(self) -> int | None:
        return None

    def _write(self, partition: Partition) -> Procedure[None]:
        of = TopicPartition(partition.topic, partition.index)
        held, wish = self._held.get(of), Wish.of(partition)
        if held is None or wish is None:
            return
        members = isr.proposed_isr(wish.asked)
        if (yield from self._nodes.write_isr(held, members)):
            tell_written(self._outbox, wish.partition.node_id)
            self._settle(wish, members)
            return
        self._outbox.trace("isr-not-written", partition=wish.partition.name)
        self._failed(of)

    def _settle(self, wish: Wish, members: tuple[int, ...]) -> None:
        if wish.is_wanted:
            wish.role.isr = Committed(members=members)
            self.decided.append(wish.partition)
