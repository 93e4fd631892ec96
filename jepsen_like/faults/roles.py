"""Whom a role means at the moment when a fault strikes.

Who leads is asked of whoever watches the cluster; which one, where any would do, is drawn. Pure.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from random import Random

from jepsen_like.faults.fault import Role

__all__ = ["Roles"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    controllers: Sequence[int]
    brokers: Sequence[int]  # none: in a quorum alone, its voters stand in for them
    active_controller: Callable[[], int | None]
    partition_leaders: Callable[[], Collection[int]]  # of the workload's partitions
    random: Random
    zookeepers: Sequence[int] = ()

    def nodes_of(self, role: Role, struck: Collection[int] = ()) -> Sequence[int]:
        """Empty if nobody has the role now. Who is `struck` already is no longer "any" node."""
        voters, brokers = self.controllers, self.brokers or self.controllers
        match role:
            case Role.ACTIVE_CONTROLLER:
                active = self.active_controller()
                return [] if active is None else [active]
            case Role.LEADER:
                return self._one(self.partition_leaders() or brokers, struck)
            case Role.ONE | Role.ONE_BROKER | Role.ONE_CONTROLLER | Role.ONE_ZOOKEEPER:
                return self._one(self._any_of(role), struck)
            case Role.MINORITY:
                return self._some(voters, (len(voters) - 1) // 2)
            case Role.MAJORITY:
                return self._some(voters, len(voters) // 2 + 1)
            case Role.BROKERS:
                return sorted(brokers)
            case Role.ALL:
                return sorted({*voters, *brokers})

    def _any_of(self, role: Role) -> Collection[int]:
        voters, brokers = self.controllers, self.brokers or self.controllers
        pools = {
            Role.ONE_BROKER: brokers,
            Role.ONE_CONTROLLER: voters,
            Role.ONE_ZOOKEEPER: self.zookeepers,
        }
        return pools.get(role, {*voters, *brokers})

    def _one(self, nodes: Collection[int], struck: Collection[int]) -> Sequence[int]:
        return self._some(set(nodes) - set(struck), 1)

    def _some(self, nodes: Collection[int], count: int) -> Sequence[int]:
        ordered = sorted(nodes)
        return sorted(self.random.sample(ordered, min(count, len(ordered))))
