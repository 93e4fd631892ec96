"""Single requests and answers between nodes: held, dropped, doubled, reordered. By the proxies.

    apis        names of APIs, each with a rule of its own; default: what nodes ask of each other
    direction   "request": what the targets ask; "response": what they are answered, which never
                comes twice
    trigger     `once()`, `on_call(n)`, `times(n)`, `with_probability(p)`, `always()`

What is held goes on when the fault heals. Clients are left alone: a network can double what a
client sent only if the client sends it again, and then that client knows.

The proof is how many messages the rules have struck.
"""

from collections.abc import Sequence

from jepsen_like.faults import Fault, Injected, Proof
from jepsen_like.in_force import InForce
from jepsen_like.real.injection.network import NO_LINKS
from jepsen_like.real.layout import ClusterError, ClusterLayout
from jepsen_like.real.proxy import ProxyMesh
from jepsen_like.rules import (
    Action,
    Armed,
    Frame,
    FrameRule,
    api_key_of,
    parse_trigger,
)

__all__ = ["MESSAGE_KINDS", "OnMessages", "on_messages"]

BETWEEN_NODES = (
    "fetch",
    "vote",
    "begin_quorum_epoch",
    "alter_partition",
    "broker_heartbeat",
    "broker_registration",
    "envelope",
)
# What each does by default: enough to be felt, not so much that nothing else goes on. A heartbeat
# comes once or twice while a fault lasts: where everything may come twice, that does.
MESSAGE_KINDS: dict[str, tuple[Action, str]] = {
    "hold-rpc": (Action.HOLD, "times(2)"),
    "drop-rpc": (Action.DROP, "times(2)"),
    "duplicate-rpc": (Action.DUPLICATE, "always()"),
    "reorder-rpc": (Action.REORDER, "with_probability(0.5)"),
}


class OnMessages:
    def __init__(
        self, layout: ClusterLayout, mesh: ProxyMesh, action: Action, trigger: str
    ) -> None:
        self._layout = layout
        self._mesh = mesh
        self._action = action
        self._trigger = trigger

    def why_not(self) -> str:
        return "" if self._layout.links else NO_LINKS

    def inject(self, fault: Fault, targets: Sequence[int]) -> Injected:
        mesh = self._mesh
        rules = [rule for target in targets for rule in self._rules(fault, target)]
        armed = [(rule, mesh.arm(rule)) for rule in rules]

        def heal() -> None:
            for _, each in armed:
                mesh.release(each)

        return InForce(targets, heal=heal, prove=lambda: _proof(armed))

    def _rules(self, fault: Fault, target: int) -> list[FrameRule]:
        """Raises ValueError for names and triggers that there are not."""
        wanted = fault.parameters
        is_request = wanted.get("direction", "request") == "request"
        if self._action is Action.DUPLICATE and not is_request:
            raise ClusterError("answers do not come twice: a client takes one to each request")
        others = [node.id for node in self._layout.nodes if node.id != target]
        return [
            FrameRule(
                action=self._action,
                source=target if is_request else other,
                target=other if is_request else target,
                api_key=api_key_of(name),
                is_request=is_request,
                trigger=parse_trigger(wanted.get("trigger", self._trigger)),
            )
            for name in wanted.get("apis", BETWEEN_NODES)
            for other in others
        ]


def _proof(armed: Sequence[tuple[FrameRule, Armed[Frame]]]) -> Proof:
    seen = [f"{rule}: {each.fired} of {each.calls}" for rule, each in armed if each.fired]
    return Proof(bit=bool(seen), evidence="; ".join(seen) or "no such message came")


def on_messages(layout: ClusterLayout, mesh: ProxyMesh) -> dict[str, OnMessages]:
    return {
        kind: OnMessages(layout, mesh, action, trigger)
        for kind, (action, trigger) in MESSAGE_KINDS.items()
    }
