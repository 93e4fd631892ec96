"""Faults of the network: links between nodes that are cut, late or lossy, and single messages that
are held, dropped, doubled or reordered, named by API or by channel.

    holding   what arrives meanwhile waits for the end of a cut (default: true), or is lost
    channel   one connection, between the targets and the nodes `others`
    loses     of what was held there: it never arrives (default: false)

The other parameters are those of real runs (`jepsen_like.faults.cut_links`, `message_rules`).
Clients are one host here, which always reaches everybody. The proof is how many messages were
stopped, late, lost, or taken by a rule.
"""

from collections.abc import Mapping, Sequence

from jepsen_like.faults.cut_links import CUTS, Direction, DirectionsOf, around
from jepsen_like.faults.fault import Course, Fault, in_force
from jepsen_like.faults.message_rules import Action, Armed, Trigger, rules_of
from jepsen_like.faults.participants import CLIENTS
from jepsen_like.sim.world.assembly import AnyAssembly
from jepsen_like.sim.world.interception import Interception, Matches, Rule
from jepsen_like.sim.world.network import Message

__all__ = ["NetworkFaults"]

_DELAY_MS = 100
_TRIGGERS: Mapping[str, Trigger] = {
    "hold-rpc": Trigger(count=2),
    "drop-rpc": Trigger(count=2),
    "duplicate-rpc": Trigger(probability=0.3),
    "reorder-rpc": Trigger(probability=0.3),
}
# An AlterPartition that was refused must not come again when its replica is in sync: Apache Kafka
# relies on TCP for that, too.
_NEVER_TWICE = "alter_partition"
_BETWEEN_NODES = ("fetch", "vote", "begin_quorum_epoch", "alter_partition", "broker_heartbeat")


class NetworkFaults:
    """Each method injects one kind, or a family."""

    def __init__(self, site: AnyAssembly, rules: Interception) -> None:
        self._world = site.world
        self._groups = (site.controllers, site.brokers)
        self._rules = rules

    # --- links --------------------------------------------------------------------------

    @in_force
    def cut(self, fault: Fault, targets: Sequence[int]) -> Course:
        network, is_holding = self._world.network, fault.parameters.get("holding", True)
        directions = self._directions(CUTS[fault.kind], fault, targets)
        cut = network.cut(directions, kind=fault.kind, holding=is_holding)
        yield targets
        network.heal(cut)
        done = "waited" if is_holding else "were lost"
        return [f"{cut.stopped} messages {done}"] if cut.stopped else []

    @in_force
    def delay(self, fault: Fault, targets: Sequence[int]) -> Course:
        delay_ms = fault.parameters.get("delay_ms", _DELAY_MS)
        rule = self._on_links(fault, targets, Action.DELAY, delay_ms=delay_ms)
        return (yield from self._while_armed(fault, targets, [rule]))

    @in_force
    def lose(self, fault: Fault, targets: Sequence[int]) -> Course:
        """Who sends over a connection that is reset is told so at once, but not by this network."""
        rule = self._on_links(fault, targets, Action.DROP)
        return (yield from self._while_armed(fault, targets, [rule]))

    def _on_links(
        self, fault: Fault, targets: Sequence[int], action: Action, *, delay_ms: int = 0
    ) -> Rule:
        directions = frozenset(self._directions(around, fault, targets))

        def matches(message: Message) -> bool:
            return (message.source, message.target) in directions

        return self._rules.add(Armed(matches, action=action, delay_ms=delay_ms))

    def _directions(
        self, directions: DirectionsOf, fault: Fault, targets: Sequence[int]
    ) -> list[Direction]:
        return [
            direction
            for direction in directions(self._groups, fault, targets)
            if CLIENTS not in direction
        ]

    # --- messages -----------------------------------------------------------------------

    @in_force
    def apply_rules(self, fault: Fault, targets: Sequence[int]) -> Course:
        if "channel" in fault.parameters:
            armed = [self._rules.hold(_on_channel(fault, targets))]
        else:
            apis = fault.parameters.get("apis", _BETWEEN_NODES)
            if fault.kind == "duplicate-rpc":
                apis = [name for name in apis if name != _NEVER_TWICE]
            rules = rules_of(fault, targets, self._world.nodes, apis=apis, triggers=_TRIGGERS)
            armed = [self._rules.arm(rule) for rule in rules]
        return (yield from self._while_armed(fault, targets, armed))

    def _while_armed(self, fault: Fault, targets: Sequence[int], armed: Sequence[Rule]) -> Course:
        yield targets
        fired = sum(each.fired for each in armed)
        self._world.counts.fired(fault.kind, fired)
        for each in armed:
            if fault.parameters.get("loses"):
                each.drop()
            else:
                each.release()
        return [f"{fired} messages: {armed[0].action}"] if fired else []


def _on_channel(fault: Fault, targets: Sequence[int]) -> Matches:
    wanted = fault.parameters
    is_request = wanted["direction"] == "request"
    out = {(target, other) for target in targets for other in wanted["others"]}
    links = out if is_request else {(other, target) for target, other in out}

    def matches(message: Message) -> bool:
        is_there = (message.source, message.target) in links
        return (
            is_there and message.is_request == is_request and message.channel == wanted["channel"]
        )

    return matches
