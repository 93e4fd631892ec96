"""Faults of disks: their syncs fail, or take long."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

from jepsen_like.faults.fault import Course, Fault, in_force
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.faults.virtual_processes import start_again
from jepsen_like.sim.world.assembly import AnyAssembly

__all__ = ["Disks"]

_SLOW = 100  # times


class Disks:
    """Each method injects one kind."""

    def __init__(self, site: AnyAssembly) -> None:
        self._world = site.world

    @in_force
    def fail_syncs(self, fault: Fault, targets: Sequence[int]) -> Course:
        counts = self._world.counts.by_kind
        before = counts["fsync_failed"]
        yield from self._changed(targets, lambda disk: replace(disk, fsync_failure=1.0))
        count = counts["fsync_failed"] - before
        return [f"{count} syncs failed"] if count else []

    @in_force
    def slow_down(self, fault: Fault, targets: Sequence[int]) -> Course:
        disks = {node: self._world.nodes[node].disk for node in targets}
        before = {node: disk.syncs for node, disk in disks.items()}
        yield from self._changed(
            targets, lambda disk: replace(disk, sync_us_mean=_SLOW * disk.sync_us_mean)
        )
        counts = {node: disk.syncs - before[node] for node, disk in disks.items()}
        return [
            f"{count} syncs of node {node} took {_SLOW} times as long"
            for node, count in counts.items()
            if count
        ]

    def _changed(
        self, targets: Sequence[int], change: Callable[[DiskFaults], DiskFaults]
    ) -> Generator[Sequence[int], None, None]:
        hosts = [self._world.nodes[node] for node in targets]
        before = [host.disk.faults for host in hosts]
        for host in hosts:
            host.disk.faults = change(host.disk.faults)
        yield targets
        for host, faults in zip(hosts, before, strict=True):
            host.disk.faults = faults
            start_again(host)
