"""Faults of the network: those that the proxies make without root, and lost packets below TCP.

    partition            nothing gets through between the targets and everybody else
    isolate-controller   the same; drawn for the active controller
    partition-one-way    in one direction alone: requests are lost, or the answers to them
    partition-ring       see `ways`
    bridge               see `ways`
    delay                `delay_ms` and up to `jitter_ms` more, both ways; with `bytes_per_second`
                         the way is narrow, too
    reset                every connection of the targets is reset, and so is each new one
    slow-close           the asker's end is closed at once, the asked node hears it `delay_ms` later
    netns-partition   every packet between the targets and everybody else
    netns-one-way     every packet in one direction alone: that of what is said, or of its receipt
    netns-loss        `percent` of the packets between the targets and everybody else, clients too

The last three need root, and namespaces in which nodes meet without proxies
(`jepsen_like.schedule.clash`). They make what proxies cannot: a connection attempt that nobody
answers, a sender that sends again ever more seldom, a connection of which only one end knows that
it is dead.

The proof is what the proxies counted (frames that waited, connections that were refused), or how
many packets the switch dropped.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from jepsen_like.cut_links import Groups, Ways, around, bridge, one_way, ring
from jepsen_like.faults import Fault, Injected, Proof
from jepsen_like.in_force import InForce
from jepsen_like.real.flows import Bandwidth, Cut, Delay, Imposed, Refuse, SlowClose, Trouble
from jepsen_like.real.injection.namespaces import Switch, why_no_namespaces
from jepsen_like.real.layout import ClusterLayout
from jepsen_like.real.proxy import ProxyMesh

__all__ = [
    "NETWORK_KINDS",
    "NO_LINKS",
    "OnFlows",
    "OnPackets",
    "PACKET_KINDS",
    "groups_of",
    "on_flows",
    "on_packets",
]

NO_LINKS = "needs two nodes, or a client and a broker: there is no link to strike"
_DELAY_MS = 100
_JITTER_MS = 50
_CLOSE_MS = 2_000

Troubles = Callable[[Fault], Sequence[Trouble]]


_PERCENT = 20
PACKET_KINDS: dict[str, Ways] = {
    "netns-partition": around,
    "netns-one-way": one_way,
    "netns-loss": around,
}


def _cut(fault: Fault) -> Sequence[Trouble]:
    return [Cut()]


def _late(fault: Fault) -> Sequence[Trouble]:
    wanted = fault.parameters
    troubles: list[Trouble] = [
        Delay(
            delay_ms=wanted.get("delay_ms", _DELAY_MS),
            jitter_ms=wanted.get("jitter_ms", _JITTER_MS),
        )
    ]
    if "bytes_per_second" in wanted:
        troubles.append(Bandwidth(bytes_per_second=wanted["bytes_per_second"]))
    return troubles


def _refuse(fault: Fault) -> Sequence[Trouble]:
    return [Refuse()]


def _slow_close(fault: Fault) -> Sequence[Trouble]:
    return [SlowClose(delay_ms=fault.parameters.get("delay_ms", _CLOSE_MS))]


NETWORK_KINDS: dict[str, tuple[Ways, Troubles]] = {
    "partition": (around, _cut),
    "isolate-controller": (around, _cut),
    "partition-one-way": (one_way, _cut),
    "partition-ring": (ring, _cut),
    "bridge": (bridge, _cut),
    "delay": (around, _late),
    "reset": (around, _refuse),
    "slow-close": (around, _slow_close),
}


class OnFlows:
    """Lays troubles on the flows between the targets and others."""

    def __init__(
        self, layout: ClusterLayout, mesh: ProxyMesh, ways: Ways, troubles: Troubles
    ) -> None:
        self._layout = layout
        self._mesh = mesh
        self._ways = ways
        self._troubles = troubles

    def why_not(self) -> str:
        return "" if self._layout.links else NO_LINKS

    def inject(self, fault: Fault, targets: Sequence[int]) -> Injected:
        mesh = self._mesh
        ways = self._ways(groups_of(self._layout), fault, targets)
        imposed = [mesh.impose(trouble, ways) for trouble in self._troubles(fault)]
        if any(isinstance(each.trouble, SlowClose) for each in imposed):
            mesh.leave_askers(ways)

        def heal() -> None:
            for each in imposed:
                mesh.lift(each)

        return InForce(targets, heal=heal, prove=lambda: _proof(imposed))


def groups_of(layout: ClusterLayout) -> Groups:
    return [[node.id for node in group] for group in (layout.controllers, layout.brokers)]


def _proof(imposed: Sequence[Imposed]) -> Proof:
    return Proof(
        bit=all(each.is_proven for each in imposed),
        evidence="; ".join(each.describe() for each in imposed),
    )


def on_flows(layout: ClusterLayout, mesh: ProxyMesh) -> dict[str, OnFlows]:
    return {
        kind: OnFlows(layout, mesh, ways, troubles)
        for kind, (ways, troubles) in NETWORK_KINDS.items()
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
