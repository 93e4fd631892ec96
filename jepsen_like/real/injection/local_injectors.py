"""All kinds of faults on a local cluster, by name.

    with prepared(cluster, kinds) as gear:  # before the nodes start; left when they have ended
        cluster.start_all()
        known = injectors(cluster, mesh, gear)
        known["pause"].inject(fault, nodes)

What this machine or this cluster cannot do says why: `known[kind].why_not`.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jepsen_like.faults.fault import Injector, cannot
from jepsen_like.faults.kinds import KINDS
from jepsen_like.faults.message_rules import MESSAGE_KINDS
from jepsen_like.real.injection.certificate_rotation import (
    rotate_certificates,
    why_no_rotation,
)
from jepsen_like.real.injection.clocks import jump, prepare_clock, why_no_clock, why_no_jump
from jepsen_like.real.injection.corruption import flip_bit, tear_write
from jepsen_like.real.injection.filesystems import DiskImage, why_no_disks
from jepsen_like.real.injection.membership import NOT_DYNAMIC, change_voters
from jepsen_like.real.injection.namespaces import Switch
from jepsen_like.real.injection.network_faults import (
    NO_LINKS,
    apply_rules,
    groups_of,
    on_flows,
    on_packets,
    why_no_messages,
)
from jepsen_like.real.injection.process_faults import down, exhaust, kill, pause, restart_all, stop
from jepsen_like.real.injection.storage import STORAGE_KINDS, storage_injectors
from jepsen_like.real.injection.zookeeper_faults import zookeeper_injectors
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.proxy import ProxyMesh

__all__ = ["Gear", "injectors", "prepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gear:
    """The disks and the network that the nodes were given before they started."""

    disks: Mapping[int, DiskImage]
    switch: Switch | None  # None: they have no namespaces


@contextmanager
def prepared(cluster: LocalCluster, kinds: Collection[str]) -> Iterator[Gear]:
    """Prepare what the nodes must have before they start, where this machine allows it.

    Disks are for nodes without data; what stands on them in the end stays in the data directories.
    Namespaces are for nodes that the layout gives addresses in a network.
    """
    with ExitStack() as stack:
        switch = Switch(cluster.layout) if cluster.layout.network else None
        if switch is not None:
            switch.make()
            stack.callback(switch.remove)
        disks: dict[int, DiskImage] = {}
        for node in cluster.layout.nodes:
            if switch is not None:
                cluster.entrance[node.id] = switch.entrance(node.id)
            if "clock-jump" in kinds and not why_no_clock():
                prepare_clock(cluster, node)
            is_new = not node.data.exists()
            if is_new and not why_no_disks() and not set(kinds).isdisjoint(STORAGE_KINDS):
                disk = DiskImage(node)
                disk.make()
                stack.callback(disk.remove)
                disks[node.id] = disk
        yield Gear(disks=disks, switch=switch)


def injectors(cluster: LocalCluster, mesh: ProxyMesh, gear: Gear) -> dict[str, Injector]:
    """`mesh`: the proxies between the nodes; `gear` as it was prepared."""
    no_proc = "" if Path("/proc/self/fd").exists() else "needs /proc"
    no_links = "" if cluster.layout.links else NO_LINKS
    messages = Injector(
        partial(apply_rules, cluster.layout, mesh), no_links or why_no_messages(cluster.layout)
    )
    apart = f"the {cluster.layout.design} design has no nodes that are controllers alone"
    return {
        **{kind: cannot(known.not_on_processes) for kind, known in KINDS.items()},
        "kill": Injector(partial(down, cluster, kill)),
        "stop": Injector(partial(down, cluster, stop)),
        "pause": Injector(partial(pause, cluster), no_proc),
        "rolling-restart": Injector(partial(restart_all, cluster)),
        "fd-exhaustion": Injector(partial(exhaust, cluster), no_proc),
        "torn-write": Injector(partial(tear_write, cluster)),
        "bit-flip": Injector(partial(flip_bit, cluster)),
        "clock-jump": Injector(partial(jump, cluster), why_no_jump(cluster)),
        "rotate-certificates": Injector(
            partial(rotate_certificates, cluster), why_no_rotation(cluster)
        ),
        "membership": Injector(
            partial(change_voters, cluster), "" if cluster.layout.dynamic else NOT_DYNAMIC
        ),
        **zookeeper_injectors(cluster, mesh),
        **on_flows(groups_of(cluster.layout), mesh, no_links),
        **({} if cluster.layout.controllers else {"cut-controllers": cannot(apart)}),
        **dict.fromkeys(MESSAGE_KINDS, messages),
        **on_packets(cluster.layout, gear.switch),
        **storage_injectors(cluster, gear.disks),
    }
