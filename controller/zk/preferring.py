"""Preferred leaders of `zk-redesign`: elected where an administrator asks, and from time to time.

Decides when partitions go back to their first replica. Who may lead is `electing`'s matter, and a
partition of a topic that is being deleted is let be.

Source: seed 001, "preferred replica leader election"; Kafka's auto.leader.rebalance.enable.
"""

from collections.abc import Callable, Iterable

from controller.metadata.election import Election
from controller.metadata.partitions import PartitionState
from controller.metadata.znode_reading import decoded
from controller.zk import leader_selection
from controller.zk.controller_context import Context
from controller.zk.state_machines import Stage
from quorum.core.milestones import Cause, Occasion
from quorum.zookeeper.zk_procedures import Procedure, one
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.session import Data, Delete, Exists, GetData
from wire.zk.znodes import PartitionList

__all__ = ["Preferring"]


class Preferring:
    def __init__(
        self,
        context: Context,
        stage: Stage,
        *,
        is_deleted: Callable[[TopicPartition], bool],
    ) -> None:
        self._context = context
        self._stage = stage
        self._is_deleted = is_deleted
        self._next_balance_ms: int | None = None

    def asked(self) -> Procedure[None]:
        """What an administrator has asked for; the node goes when it is done, unless somebody has
        written there since: that is the next event."""
        path = paths.PREFERRED_REPLICA_ELECTION
        yield from one(Exists(path=path, watch=True))
        found = yield from one(GetData(path=path))
        listed = decoded(found, PartitionList.decode)
        if listed is not None:
            yield from self._prefer(TopicPartition(*each) for each in listed.partitions)
        if isinstance(found, Data):
            yield from one(Delete(path=path, version=found.stat.version))

    def balance(self) -> Procedure[None]:
        """auto.leader.rebalance.enable."""
        yield from self._prefer(self._context.partitions())

    def _prefer(self, asked: Iterable[TopicPartition]) -> Procedure[None]:
        wanted = [of for of in asked if not self._is_deleted(of)]
        self._context.milestones.go_on(Cause(Occasion.ELECTION))
        yield from self._stage.change(wanted, self._preferred)

    def _preferred(self, of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
        replicas = self._context.replicas(of)
        if state is None or not replicas or state.leader == replicas[0]:
            return None
        after = leader_selection.elected(state, self._context.live, Election.PREFERRED)
        return after if after is not None and after.leader == replicas[0] else None

    # --- time ---------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        interval_ms = self._context.config.balance_interval_ms
        if not interval_ms:
            return
        if self._next_balance_ms is None:
            self._next_balance_ms = now_ms + interval_ms
        elif now_ms >= self._next_balance_ms:
            self._next_balance_ms = now_ms + interval_ms
            self._context.procedures.submit("balance", self.balance)

    def deadline_ms(self) -> int | None:
        is_due = self._next_balance_ms is None and self._context.config.balance_interval_ms
        return self._context.now_ms if is_due else self._next_balance_ms
