"""Faults of links between nodes: cut, late, lossy.

    holding   what arrives meanwhile waits for the end of a cut (default: true), or is lost

The other parameters are those of `jepsen_like.faults.cut_links`. Clients are one host here, which
always reaches everybody. The proof is how many messages were stopped, late or lost.
"""

from collections.abc import Sequence

from jepsen_like.faults.cut_links import CUTS, Direction, DirectionsOf, around
from jepsen_like.faults.fault import Fault, InForce, Proof, proof_of
from jepsen_like.faults.message_rules import Action, Armed
from jepsen_like.faults.participants import CLIENTS
from jepsen_like.sim.faults.site import Site
from jepsen_like.sim.faults.virtual_messages import Messages
from jepsen_like.sim.world.interception import Interception
from jepsen_like.sim.world.network import Message

__all__ = ["Links"]

_DELAY_MS = 100


class Links:
    """Each method injects one kind, or a family."""

    def __init__(self, site: Site, rules: Interception) -> None:
        self._network = site.world.network
        self._groups = (site.controllers, site.brokers)
        self._rules = rules
        self._messages = Messages(site, rules)

    def cut(self, fault: Fault, targets: Sequence[int]) -> InForce:
        is_holding = fault.parameters.get("holding", True)
        directions = self._directions(CUTS[fault.kind], fault, targets)
        cut = self._network.cut(directions, kind=fault.kind, holding=is_holding)

        def prove() -> Proof:
            done = "waited" if is_holding else "were lost"
            return proof_of([f"{cut.stopped} messages {done}"] if cut.stopped else [])

        return InForce(targets, heal=lambda: self._network.heal(cut), prove=prove)

    def delay(self, fault: Fault, targets: Sequence[int]) -> InForce:
        delay_ms = fault.parameters.get("delay_ms", _DELAY_MS)
        return self._strike(fault, targets, Action.DELAY, delay_ms=delay_ms)

    def lose(self, fault: Fault, targets: Sequence[int]) -> InForce:
        """Who sends over a connection that is reset is told so at once, but not by this network."""
        return self._strike(fault, targets, Action.DROP)

    def _directions(
        self, directions: DirectionsOf, fault: Fault, targets: Sequence[int]
    ) -> list[Direction]:
        return [
            direction
            for direction in directions(self._groups, fault, targets)
            if CLIENTS not in direction
        ]

    def _strike(
        self, fault: Fault, targets: Sequence[int], action: Action, *, delay_ms: int = 0
    ) -> InForce:
        directions = frozenset(self._directions(around, fault, targets))

        def matches(message: Message) -> bool:
            return (message.source, message.target) in directions

        armed = self._rules.add(Armed(matches, action=action, delay_ms=delay_ms))
        return self._messages.by(fault, targets, [armed])
