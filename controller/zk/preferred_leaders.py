"""Preferred leaders of `zk-redesign`: elected where an administrator asks, and from time to time.

Decides when leadership moves back to the first replica. `leader_selection` decides who may lead;
partitions of a topic that is being deleted are left alone.

Source: seed 001, "preferred replica leader election"; Kafka's auto.leader.rebalance.enable.
"""

from collections.abc import Iterable

from controller.metadata.election import Election
from controller.metadata.partitions import PartitionState
from controller.zk import leader_selection
from controller.zk.controller_context import Context, Periodic
from controller.zk.state_machines import StateMachines
from controller.zk.zk_metadata import decoded
from quorum.core.milestones import Cause, Occasion
from quorum.zookeeper.zk_procedures import Procedure, one
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.session import Data, Delete, Exists, GetData
from wire.zk.znodes import PartitionList

__all__ = ["PreferredLeaders"]


class PreferredLeaders:
    def __init__(self, context: Context, stage: StateMachines) -> None:
        self._context = context
        self._stage = stage
        interval_ms = context.config.balance_interval_ms
        self._is_wanted = bool(interval_ms)
        self._balancing = Periodic(context, interval_ms, "balance", self.balance)

    def asked(self) -> Procedure[None]:
        """Do what an administrator has asked for, and delete the node, unless somebody has written
        there since: that is the next event."""
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
        wanted = [of for of in asked if not self._context.is_deleting(of)]
        self._context.milestones.go_on(Cause(Occasion.ELECTION))
        yield from self._stage.change(wanted, self._preferred)

    def _preferred(self, of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
        replicas = self._context.replicas(of)
        if state is None or not replicas or state.leader == replicas[0]:
            return None
        after = leader_selection.elected(state, self._context.live, Election.PREFERRED)
        return after if after is not None and after.leader == replicas[0] else None

    def tick(self, now_ms: int) -> None:
        self._balancing.tick(now_ms, is_wanted=self._is_wanted)

    def deadline_ms(self) -> int | None:
        return self._balancing.deadline_ms(is_wanted=self._is_wanted)
