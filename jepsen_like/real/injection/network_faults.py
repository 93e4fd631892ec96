"""Faults of the network: those that the proxies make without root, and lost packets below TCP.

A slow close ends the asker's side of a connection at once, and tells the asked node `delay_ms`
later. Packets are dropped between namespaces, in which nodes meet without proxies: that makes what
proxies cannot, a connection attempt that nobody answers, a sender that repeats ever more seldom, a
connection of which only one end knows that it is dead.

The proof is what the proxies counted (frames that waited, connections that were refused, messages
that a rule took), or how many packets the switch dropped.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from jepsen_like.faults.cut_links import CUTS, DirectionsOf, Groups, around
from jepsen_like.faults.fault import Course, Fault, Injector, Proof, in_force
from jepsen_like.faults.message_rules import ALWAYS, Trigger, rules_of
from jepsen_like.real.impairments import Cut, Delay, Impairment, Refuse, SlowClose
from jepsen_like.real.injection.namespaces import Switch, why_no_namespaces
from jepsen_like.real.layout import ClusterError, ClusterLayout
from jepsen_like.real.proxy import ProxyMesh

__all__ = [
    "NO_LINKS",
    "apply_rules",
    "groups_of",
    "impair_flows",
    "on_flows",
    "on_packets",
    "why_no_messages",
]

NO_LINKS = "needs two nodes, or a client and a broker: there is no link to cut"
_DELAY_MS = 100
_JITTER_MS = 50
_CLOSE_MS = 2_000

_PERCENT = 20

ImpairmentOf = Callable[[Fault], Impairment]
PACKET_KINDS: dict[str, DirectionsOf] = {
    "netns-partition": CUTS["netns-partition"],
    "netns-one-way": CUTS["netns-one-way"],
    "netns-loss": around,
}


def _late(fault: Fault) -> Impairment:
    wanted = fault.parameters
    return Delay(
        delay_ms=wanted.get("delay_ms", _DELAY_MS), jitter_ms=wanted.get("jitter_ms", _JITTER_MS)
    )


NETWORK_KINDS: dict[str, tuple[DirectionsOf, ImpairmentOf]] = {
    **{
        kind: (directions, lambda _: Cut())
        for kind, directions in CUTS.items()
        if kind not in PACKET_KINDS
    },
    "delay": (around, _late),
    "reset": (around, lambda _: Refuse()),
    "slow-close": (
        around,
        lambda fault: SlowClose(delay_ms=fault.parameters.get("delay_ms", _CLOSE_MS)),
    ),
}


@in_force
def impair_flows(groups: Groups, mesh: ProxyMesh, fault: Fault, targets: Sequence[int]) -> Course:
    """Lays an impairment on the flows between the targets and others."""
    directions_of, impairment_of = NETWORK_KINDS[fault.kind]
    directions = directions_of(groups, fault, targets)
    imposed = mesh.impose(impairment_of(fault), directions)
    if isinstance(imposed.impairment, SlowClose):
        mesh.leave_askers(directions)
    yield targets
    mesh.lift(imposed)
    return Proof(bit=imposed.is_proven, evidence=imposed.describe())


def groups_of(layout: ClusterLayout) -> Groups:
    return [[node.id for node in group] for group in (layout.controllers, layout.brokers)]


def on_flows(groups: Groups, mesh: ProxyMesh, why: str = "") -> dict[str, Injector]:
    """`why` there are no flows, if there are none."""
    return dict.fromkeys(NETWORK_KINDS, Injector(partial(impair_flows, groups, mesh), why))


@in_force
def drop_packets(
    layout: ClusterLayout, switch: Switch | None, fault: Fault, targets: Sequence[int]
) -> Course:
    assert switch is not None, fault
    is_loss = fault.kind == "netns-loss"
    percent = fault.parameters.get("percent", _PERCENT) if is_loss else 100
    if is_loss:
        fault = replace(fault, parameters={**fault.parameters, "clients": True})
    directions = PACKET_KINDS[fault.kind](groups_of(layout), fault, targets)
    table = switch.drop(directions, percent=percent)
    yield targets
    lost = switch.lift(table)
    return Proof(bit=lost > 0, evidence=f"{lost} packets were dropped")


def on_packets(layout: ClusterLayout, switch: Switch | None) -> dict[str, Injector]:
    why = ""
    if layout.zookeeper_connect:
        why = "a cluster with ZooKeeper has no namespaces: ZooKeeper listens on 127.0.0.1"
    elif switch is None:
        why = why_no_namespaces() or "the nodes have no namespaces: prepare the cluster for it"
    return dict.fromkeys(PACKET_KINDS, Injector(partial(drop_packets, layout, switch), why))


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
    "hold-rpc": Trigger(count=2),
    "drop-rpc": Trigger(count=2),
    "duplicate-rpc": ALWAYS,
    "reorder-rpc": Trigger(probability=0.5),
}


def why_no_messages(layout: ClusterLayout) -> str:
    return "nobody between two nodes can tell their messages apart: TLS" if layout.security else ""


@in_force
def apply_rules(
    layout: ClusterLayout, mesh: ProxyMesh, fault: Fault, targets: Sequence[int]
) -> Course:
    wanted = fault.parameters
    if fault.kind == "duplicate-rpc" and wanted.get("direction", "request") != "request":
        raise ClusterError("answers do not come twice: a client takes one to each request")
    nodes = [node.id for node in layout.nodes]
    apis = wanted.get("apis", BETWEEN_NODES)
    rules = rules_of(fault, targets, nodes, apis=apis, triggers=_TRIGGERS)
    armed = [(rule, mesh.arm(rule)) for rule in rules]
    yield targets
    for _, each in armed:
        mesh.release(each)
    fired = [f"{rule}: {each.fired} of {each.calls}" for rule, each in armed if each.fired]
    return Proof(bit=bool(fired), evidence="; ".join(fired) or "no such message came")
