"""Single requests and answers between nodes: held, dropped, doubled, reordered. By the proxies.

The parameters are those of `jepsen_like.faults.struck_messages`; an answer never comes twice.

The proof is how many messages the rules have struck.
"""

from collections.abc import Sequence

from jepsen_like.faults.fault import Fault, Proof
from jepsen_like.faults.injectors import InForce
from jepsen_like.faults.message_rules import Armed, Frame, FrameRule
from jepsen_like.faults.struck_messages import rules_of
from jepsen_like.real.layout import ClusterError, ClusterLayout
from jepsen_like.real.proxy import ProxyMesh

__all__ = ["BETWEEN_NODES", "strike_messages"]

BETWEEN_NODES = (
    "fetch",
    "vote",
    "begin_quorum_epoch",
    "alter_partition",
    "broker_heartbeat",
    "broker_registration",
    "envelope",
)
# Enough to be felt, not so much that nothing else goes on. A heartbeat comes once or twice while a
# fault lasts: where everything may come twice, that does.
_TRIGGERS = {
    "hold-rpc": "times(2)",
    "drop-rpc": "times(2)",
    "duplicate-rpc": "always()",
    "reorder-rpc": "with_probability(0.5)",
}


def strike_messages(
    layout: ClusterLayout, mesh: ProxyMesh, fault: Fault, targets: Sequence[int]
) -> InForce:
    wanted = fault.parameters
    if fault.kind == "duplicate-rpc" and wanted.get("direction", "request") != "request":
        raise ClusterError("answers do not come twice: a client takes one to each request")
    nodes = [node.id for node in layout.nodes]
    apis = wanted.get("apis", BETWEEN_NODES)
    rules = rules_of(fault, targets, nodes, apis=apis, triggers=_TRIGGERS)
    armed = [(rule, mesh.arm(rule)) for rule in rules]

    def heal() -> None:
        for _, each in armed:
            mesh.release(each)

    return InForce(targets, heal=heal, prove=lambda: _proof(armed))


def _proof(armed: Sequence[tuple[FrameRule, Armed[Frame]]]) -> Proof:
    seen = [f"{rule}: {each.fired} of {each.calls}" for rule, each in armed if each.fired]
    return Proof(bit=bool(seen), evidence="; ".join(seen) or "no such message came")
