"""Whom a role means now: asked of the nodes at the moment when a fault strikes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random

from jepsen_like.faults import Role
from jepsen_like.real.clients.target import Target
from jepsen_like.real.runs.observers import Observers

__all__ = ["Roles"]


@dataclass(frozen=True, slots=True)
class Roles:
    target: Target
    observers: Observers
    random: Random  # of the run's seed: which one, where any would do

    def nodes_of(self, role: Role, struck: Collection[int] = ()) -> Sequence[int]:
        """Empty if nobody has the role now. Who is `struck` already is no longer "any" node."""
        voters = sorted(self.target.controllers)
        brokers = sorted(self.target.brokers) or voters  # a quorum may have nobody to serve
        match role:
            case Role.ACTIVE_CONTROLLER:
                leader, _ = self.observers.controller()
                return [] if leader is None else [leader]
            case Role.LEADER:
                leaders = self.observers.partition_leaders() or set(brokers)
                return self._some(leaders - set(struck), 1)
            case Role.ONE:
                return self._some({*brokers, *voters} - set(struck), 1)
            case Role.ONE_BROKER:
                return self._some(set(brokers) - set(struck), 1)
            case Role.ONE_CONTROLLER:
                return self._some(set(voters) - set(struck), 1)
            case Role.MINORITY:
                return self._some(set(voters), (len(voters) - 1) // 2)
            case Role.MAJORITY:
                return self._some(set(voters), len(voters) // 2 + 1)
            case Role.BROKERS:
                return brokers
            case Role.ALL:
                return sorted({*brokers, *voters})

    def _some(self, nodes: set[int], count: int) -> Sequence[int]:
        ordered = sorted(nodes)
        return sorted(self.random.sample(ordered, min(count, len(ordered))))
