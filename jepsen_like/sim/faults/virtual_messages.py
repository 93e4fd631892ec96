"""Single messages between nodes: held, dropped, doubled, reordered, named by API or by channel.

    channel   one connection, between the targets and the nodes `others`
    loses     of what was held there: it never arrives (default: false)

The other parameters are those of real runs (`jepsen_like.faults.message_rules`). The proof is how
many messages the rules have struck.
"""

from collections.abc import Mapping, Sequence

from jepsen_like.faults.fault import Fault, InForce, Proof, proof_of
from jepsen_like.faults.message_rules import Armed, rules_of
from jepsen_like.sim.faults.site import Site
from jepsen_like.sim.world.interception import Interception, Matches
from jepsen_like.sim.world.network import Message

__all__ = ["Messages"]

_TRIGGERS: Mapping[str, str] = {
    "hold-rpc": "times(2)",
    "drop-rpc": "times(2)",
    "duplicate-rpc": "with_probability(0.3)",
    "reorder-rpc": "with_probability(0.3)",
}
# An AlterPartition that was refused must not come again when its replica is in sync: Apache Kafka
# relies on TCP for that, too.
_NEVER_TWICE = "alter_partition"
_BETWEEN_NODES = ("fetch", "vote", "begin_quorum_epoch", "alter_partition", "broker_heartbeat")


class Messages:
    """Each method injects a family of kinds."""

    def __init__(self, site: Site, messages: Interception) -> None:
        self._world = site.world
        self._messages = messages

    def strike(self, fault: Fault, targets: Sequence[int]) -> InForce:
        if "channel" in fault.parameters:
            return self.by(fault, targets, [self._messages.hold(_on_channel(fault, targets))])
        apis = fault.parameters.get("apis", _BETWEEN_NODES)
        if fault.kind == "duplicate-rpc":
            apis = [name for name in apis if name != _NEVER_TWICE]
        rules = rules_of(fault, targets, self._world.nodes, apis=apis, triggers=_TRIGGERS)
        return self.by(fault, targets, [self._messages.arm(rule) for rule in rules])

    def by(self, fault: Fault, targets: Sequence[int], armed: Sequence[Armed[Message]]) -> InForce:
        """Until these rules end."""

        def heal() -> None:
            self._world.counts.fired(fault.kind, sum(each.fired for each in armed))
            for each in armed:
                if fault.parameters.get("loses"):
                    each.drop()
                else:
                    each.release()

        def prove() -> Proof:
            fired = sum(each.fired for each in armed)
            return proof_of([f"{fired} messages: {armed[0].action}"] if fired else [])

        return InForce(targets, heal=heal, prove=prove)


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
