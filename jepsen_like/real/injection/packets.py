"""Faults of the network below TCP: packets get lost between namespaces. Needs root.

    netns-partition   every packet between the targets and everybody else
    netns-one-way     every packet in one direction alone: that of what is said, or of its receipt
    netns-loss        `percent` of the packets between the targets and everybody else, clients too

Beyond what proxies can make: a connection attempt that nobody answers, a sender that sends again
ever more seldom, a connection of which only one end knows that it is dead. Such nodes meet without
proxies (`jepsen_like.schedule.clash`).

The proof is how many packets the switch dropped.
"""

from collections.abc import Sequence
from dataclasses import replace

from jepsen_like.faults import Fault, Injected, Proof
from jepsen_like.in_force import InForce
from jepsen_like.real.injection.namespaces import Switch, why_no_namespaces
from jepsen_like.real.injection.network import groups_of
from jepsen_like.real.layout import ClusterLayout
from jepsen_like.ways import Ways, around, one_way

__all__ = ["PACKET_KINDS", "OnPackets", "on_packets"]

_PERCENT = 20
PACKET_KINDS: dict[str, Ways] = {
    "netns-partition": around,
    "netns-one-way": one_way,
    "netns-loss": around,
}


class OnPackets:
    def __init__(self, layout: ClusterLayout, switch: Switch | None, ways: Ways) -> None:
        self._layout = layout
        self._switch = switch
        self._ways = ways

    def why_not(self) -> str:
        if self._layout.zookeeper_connect:
            return "a cluster with ZooKeeper has no namespaces: ZooKeeper listens on 127.0.0.1"
        if self._switch is None:
            return why_no_namespaces() or "the nodes have no namespaces: prepare the cluster for it"
        return ""

    def inject(self, fault: Fault, targets: Sequence[int]) -> Injected:
        assert self._switch is not None, self.why_not()
        is_loss = fault.kind == "netns-loss"
        percent = fault.parameters.get("percent", _PERCENT) if is_loss else 100
        if is_loss:
            fault = replace(fault, parameters={**fault.parameters, "clients": True})
        ways = self._ways(groups_of(self._layout), fault, targets)
        dropping = self._switch.drop(ways, percent=percent)

        def prove() -> Proof:
            lost = dropping.packets
            return Proof(bit=lost > 0, evidence=f"{lost} packets were dropped")

        return InForce(targets, heal=dropping.lift, prove=prove)


def on_packets(layout: ClusterLayout, switch: Switch | None) -> dict[str, OnPackets]:
    return {kind: OnPackets(layout, switch, ways) for kind, ways in PACKET_KINDS.items()}
