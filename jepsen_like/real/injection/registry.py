"""All kinds of faults on a local cluster, by name.

    with prepared(cluster, kinds) as gear:  # before the nodes start; left when they have ended
        cluster.start_all()
        known = injectors(cluster, mesh, gear)
        known["pause"].inject(fault, nodes)

What this machine or this cluster cannot do says why: `known[kind].why_not()`.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from jepsen_like.faults import Injector
from jepsen_like.real.injection.clocks import ClockJump, prepare_clock, why_no_clock
from jepsen_like.real.injection.corruption import BitFlip, TornWrite
from jepsen_like.real.injection.disks import DiskImage, why_no_disks
from jepsen_like.real.injection.membership import Membership
from jepsen_like.real.injection.messages import on_messages
from jepsen_like.real.injection.namespaces import Switch
from jepsen_like.real.injection.network import on_flows, on_packets
from jepsen_like.real.injection.processes import (
    Down,
    FdExhaustion,
    Pause,
    RollingRestart,
    kill,
    stop,
)
from jepsen_like.real.injection.storage import (
    STORAGE_KINDS,
    FsyncError,
    FullDisk,
    PowerLoss,
    SlowDisk,
)
from jepsen_like.real.injection.zookeeper import ZooKeeperCut, ZooKeeperDown
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.proxy import ProxyMesh

__all__ = ["Gear", "injectors", "prepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gear:
    """What the nodes were given before they started."""

    disks: Mapping[int, DiskImage]
    switch: Switch | None  # None: they have no namespaces


@contextmanager
def prepared(cluster: LocalCluster, kinds: Collection[str]) -> Iterator[Gear]:
    """What the nodes must have before they start for some kinds, where this machine allows it.

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
    disks = gear.disks
    return {
        "kill": Down(cluster, kill),
        "stop": Down(cluster, stop),
        "kill-zookeeper": ZooKeeperDown(cluster),
        "cut-zookeeper": ZooKeeperCut(cluster, mesh),
        "pause": Pause(cluster),
        "rolling-restart": RollingRestart(cluster),
        **on_flows(cluster.layout, mesh),
        **on_messages(cluster.layout, mesh),
        **on_packets(cluster.layout, gear.switch),
        "full-disk": FullDisk(cluster, disks),
        "slow-disk": SlowDisk(cluster, disks),
        "fsync-error": FsyncError(cluster, disks),
        "power-loss": PowerLoss(cluster, disks),
        "torn-write": TornWrite(cluster),
        "bit-flip": BitFlip(cluster),
        "clock-jump": ClockJump(cluster),
        "fd-exhaustion": FdExhaustion(cluster),
        "membership": Membership(cluster),
    }
