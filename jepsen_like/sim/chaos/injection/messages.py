"""Single messages between nodes: held, dropped, doubled, reordered.

The parameters are those of real runs (`jepsen_like.real.injection.messages`). The proof is how many
messages the rules have struck.
"""

from collections.abc import Mapping, Sequence

from jepsen_like.faults import Fault, Proof
from jepsen_like.in_force import InForce, proof_of
from jepsen_like.rules import Action, Armed, FrameRule, api_key_of, parse_trigger
from jepsen_like.sim.chaos.stages import Stage
from jepsen_like.sim.interception import Interception
from jepsen_like.sim.network import Message

__all__ = ["MESSAGE_KINDS", "Messages", "struck_by"]

MESSAGE_KINDS: Mapping[str, tuple[Action, str]] = {
    "hold-rpc": (Action.HOLD, "times(2)"),
    "drop-rpc": (Action.DROP, "times(2)"),
    "duplicate-rpc": (Action.DUPLICATE, "with_probability(0.3)"),
    "reorder-rpc": (Action.REORDER, "with_probability(0.3)"),
}
# An AlterPartition that was refused must not come again when its replica is in sync: Apache Kafka
# relies on TCP for that, too.
_NEVER = ((Action.DUPLICATE, "alter_partition"),)
_BETWEEN_NODES = ("fetch", "vote", "begin_quorum_epoch", "alter_partition", "broker_heartbeat")


class Messages:
    def __init__(self, stage: Stage, messages: Interception) -> None:
        self._nodes = tuple(stage.world.nodes)
        self._messages = messages

    def strike(self, fault: Fault, targets: Sequence[int]) -> InForce:
        action, _ = MESSAGE_KINDS[fault.kind]
        rules = [rule for target in targets for rule in self._rules(fault, target, targets)]
        armed = [self._messages.arm(rule) for rule in rules]
        return struck_by(armed, action, targets, self._messages)

    def _rules(self, fault: Fault, target: int, targets: Sequence[int]) -> list[FrameRule]:
        action, trigger = MESSAGE_KINDS[fault.kind]
        wanted = fault.parameters
        is_request = wanted.get("direction", "request") == "request"
        return [
            FrameRule(
                action=action,
                source=target if is_request else other,
                target=other if is_request else target,
                api_key=api_key_of(name),
                is_request=is_request,
                trigger=parse_trigger(wanted.get("trigger", trigger)),
            )
            for other in self._nodes
            if other not in targets
            for name in wanted.get("apis", _BETWEEN_NODES)
            if (action, name) not in _NEVER
        ]


def struck_by(
    armed: Sequence[Armed[Message]],
    action: Action,
    targets: Sequence[int],
    messages: Interception,
) -> InForce:
    """Until these rules are released."""

    def heal() -> None:
        for each in armed:
            messages.release(each)

    def prove() -> Proof:
        fired = sum(each.fired for each in armed)
        return proof_of([f"{fired} messages: {action}"] if fired else [])

    return InForce(targets, heal=heal, prove=prove)
