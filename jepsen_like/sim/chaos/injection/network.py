"""Faults of links between nodes: cut, late, lossy.

Clients are one host here, which always reaches everybody.

The proof is how many messages waited, were late or were lost.
"""

from collections.abc import Sequence

from jepsen_like.cut_links import Way, Ways, around, bridge, one_way, ring
from jepsen_like.faults import Fault, Proof
from jepsen_like.in_force import InForce, proof_of
from jepsen_like.participants import CLIENTS
from jepsen_like.rules import Action, Armed
from jepsen_like.sim.chaos.injection.messages import struck_by
from jepsen_like.sim.chaos.stages import Stage
from jepsen_like.sim.interception import Interception
from jepsen_like.sim.network import Message

__all__ = ["Links"]

_DELAY_MS = 100


class Links:
    """Each method injects one kind."""

    def __init__(self, stage: Stage, messages: Interception) -> None:
        self._stage = stage
        self._messages = messages
        self._cuts = 0

    def around(self, fault: Fault, targets: Sequence[int]) -> InForce:
        return self._cut(around, fault, targets)

    def one_way(self, fault: Fault, targets: Sequence[int]) -> InForce:
        return self._cut(one_way, fault, targets)

    def ring(self, fault: Fault, targets: Sequence[int]) -> InForce:
        return self._cut(ring, fault, targets)

    def bridge(self, fault: Fault, targets: Sequence[int]) -> InForce:
        return self._cut(bridge, fault, targets)

    def delay(self, fault: Fault, targets: Sequence[int]) -> InForce:
        delay_ms = fault.parameters.get("delay_ms", _DELAY_MS)
        return self._strike(fault, targets, Action.DELAY, delay_ms=delay_ms)

    def lose(self, fault: Fault, targets: Sequence[int]) -> InForce:
        """Who sends over a connection that is reset is told so at once, but not by this network."""
        return self._strike(fault, targets, Action.DROP)

    def _ways(self, ways: Ways, fault: Fault, targets: Sequence[int]) -> list[Way]:
        groups = (self._stage.controllers, self._stage.brokers)
        return [way for way in ways(groups, fault, targets) if CLIENTS not in way]

    def _cut(self, ways: Ways, fault: Fault, targets: Sequence[int]) -> InForce:
        self._cuts += 1
        cut, kind = self._ways(ways, fault, targets), f"cut-{self._cuts}"
        network, counts = self._stage.world.network, self._stage.world.counts.by_kind
        counts[kind] = 0
        network.cut(cut, kind=kind, holding=True)

        def prove() -> Proof:
            return proof_of([f"{counts[kind]} messages waited"] if counts[kind] else [])

        return InForce(targets, heal=lambda: network.heal(cut, kind=kind), prove=prove)

    def _strike(
        self, fault: Fault, targets: Sequence[int], action: Action, *, delay_ms: int = 0
    ) -> InForce:
        ways = frozenset(self._ways(around, fault, targets))

        def matches(message: Message) -> bool:
            return (message.source, message.target) in ways

        armed = self._messages.add(Armed(matches, action=action, delay_ms=delay_ms))
        return struck_by([armed], action, targets, self._messages)
